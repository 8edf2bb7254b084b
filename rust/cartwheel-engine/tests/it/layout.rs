//! Every row of every leaf has its own, aligned place.

use cartwheel_engine::Error;
use cartwheel_engine::memory::{MAX_STEPS, Plan};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::space::{BatchLayout, DType, LEAF_ALIGN, Layout, Leaf, RolloutLayout};
use cartwheel_engine::wake::Scope;
use proptest::prelude::*;

fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
    let dtype = proptest::sample::select(DType::ALL);
    let shape = proptest::collection::vec(0_usize..5, 0..4);
    let leaf = (dtype, shape).prop_map(|(dtype, shape)| Leaf { dtype, shape });
    proptest::collection::vec(leaf, 0..6)
}

/// Checks that the places of a batch do not overlap, are aligned and lie inside.
fn are_apart(layout: BatchLayout<'_>, arrays: usize) -> Result<(), TestCaseError> {
    let rows = layout.rows();
    let mut places: Vec<_> = (0..arrays)
        .map(|leaf| (layout.leaf_offset(leaf), layout.leaf(leaf).row_bytes() * rows))
        .collect();
    places.extend(layout.ended_offset().map(|offset| (offset, rows)));
    places.push((layout.rewards_offset(), layout.reward_bytes() * rows));
    places.push((layout.terminations_offset(), rows));
    places.push((layout.truncations_offset(), rows));
    places.push((layout.phases_offset(), rows));
    places.push((layout.row_numbers_offset(), 4 * rows));
    places.push((layout.info_lengths_offset(), 4 * rows));
    for pair in places.windows(2) {
        prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:?} overlap", pair);
    }
    for (offset, bytes) in places {
        prop_assert_eq!(offset % LEAF_ALIGN, 0);
        prop_assert!(offset + bytes <= layout.bytes());
    }
    Ok(())
}

proptest! {
    #[test]
    fn places_are_aligned_disjoint_and_inside(
        leaves in leaves(), rows in 1_usize..70, width in 1_usize..5
    ) {
        for finals in [false, true] {
            let layout = Layout::with_finals(&leaves, rows, finals, width).expect("small");
            let layout = layout.batch();
            prop_assert_eq!(layout.reward_bytes(), 8 * width);
            prop_assert_eq!(layout.num_leaves(), leaves.len());
            prop_assert_eq!((layout.has_finals(), layout.ended_offset().is_some()), (finals, finals));
            are_apart(layout, leaves.len() * (1 + usize::from(finals)))?;
        }
    }

    #[test]
    fn batches_of_a_rollout_have_places_of_their_own_except_for_finals(
        leaves in leaves(), rows in 1_usize..20, steps in 1_usize..5, width in 1_usize..4
    ) {
        let plain = RolloutLayout::new(&leaves, rows, steps, false, width).expect("small");
        let rollout = RolloutLayout::new(&leaves, rows, steps, true, width).expect("small");
        let first = rollout.batch(0);
        let mut places = Vec::new();
        for number in 0..=steps {
            let (batch, plain) = (rollout.batch(number), plain.batch(number));
            let same = batch.to_layout();
            let same = same.batch();
            prop_assert_eq!(same.rewards_offset(), batch.rewards_offset());
            prop_assert_eq!(same.terminations_offset(), batch.terminations_offset());
            prop_assert_eq!(same.truncations_offset(), batch.truncations_offset());
            prop_assert_eq!(batch.num_leaves(), leaves.len());
            for (leaf, kind) in leaves.iter().enumerate() {
                let bytes = kind.row_bytes() * rows;
                prop_assert_eq!(batch.leaf_offset(leaf), plain.leaf_offset(leaf));
                places.push((batch.leaf_offset(leaf), bytes));
                let last = leaves.len() + leaf;
                prop_assert_eq!(same.leaf_offset(leaf), batch.leaf_offset(leaf));
                prop_assert_eq!(same.leaf_offset(last), batch.leaf_offset(last));
                prop_assert_eq!(batch.leaf_offset(last), first.leaf_offset(last));
                if number == 0 {
                    places.push((batch.leaf_offset(last), bytes));
                }
            }
            places.push((batch.rewards_offset(), 8 * width * rows));
            if number > 1 {
                let before = rollout.batch(number - 1).rewards_offset();
                prop_assert_eq!(batch.rewards_offset(), before + 8 * width * rows);
            }
            places.push((batch.terminations_offset(), rows));
            places.push((batch.truncations_offset(), rows));
        }
        places.push((first.ended_offset().expect("finals"), rows));
        places.push((first.phases_offset(), rows));
        places.sort_unstable();
        for pair in places.windows(2) {
            prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:?} overlap", pair);
        }
        let (offset, bytes) = places[places.len() - 1];
        prop_assert!(offset + bytes <= first.bytes());
    }
}

#[test]
fn the_layout_of_a_rollout_is_as_small_as_that_of_few_steps() {
    let leaves = [leaf(&[3]), leaf(&[])];
    let of = |steps| RolloutLayout::new(&leaves, 8, steps, true, 1).expect("it fits");
    let longest = of(MAX_STEPS);
    assert!(format!("{longest:?}").len() < format!("{:?}", of(1)).len() + 100);
    let (first, last) = (longest.batch(1), longest.batch(MAX_STEPS));
    for (at, row_bytes) in [(0, 24), (1, 8)] {
        let moved = last.leaf_offset(at) - longest.batch(0).leaf_offset(at);
        assert_eq!(moved, MAX_STEPS * 8 * row_bytes);
        assert_eq!(last.leaf_offset(2 + at), first.leaf_offset(2 + at));
    }
    let steps = MAX_STEPS - 1;
    assert_eq!(last.rewards_offset() - first.rewards_offset(), steps * 8 * 8);
    assert_eq!(last.terminations_offset() - first.terminations_offset(), steps * 8);
    assert_eq!(last.truncations_offset() - first.truncations_offset(), steps * 8);
}

#[test]
fn a_batch_beyond_the_address_space_is_an_error() {
    let leaf = Leaf { dtype: DType::F64, shape: vec![usize::MAX / 16, 3] };
    assert!(Layout::new(&[leaf], 4).is_err());
}

/// A plan of one shard; tests change its sizes.
fn plan(rows: usize, batch_size: usize) -> Plan {
    let max_slabs = rows.div_ceil(batch_size).saturating_add(1);
    Plan { batch_size, max_slabs, ..Plan::new(vec![0..rows; 1]) }
}

fn leaf(shape: &[usize]) -> Leaf {
    Leaf { dtype: DType::F64, shape: shape.to_vec() }
}

/// The reason why memory with this plan is refused.
fn refused(plan: Plan) -> String {
    match Memory::new(plan, Scope::Private) {
        Err(Error::BadPlan(reason)) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_plan_whose_sizes_wrap_is_refused_with_its_values() {
    // 2^60 elements of 16 bytes are 2^64 bytes, which wraps to nothing.
    let huge = refused(Plan { actions: vec![leaf(&[1 << 60])], ..plan(1, 1) });
    assert!(huge.contains("float64[1152921504606846976]") && huge.contains("1 row"), "{huge}");
    let shape = refused(Plan { actions: vec![leaf(&[1 << 40, 1 << 40])], ..plan(3, 3) });
    assert!(shape.contains("[1099511627776, 1099511627776]") && shape.contains('3'), "{shape}");
    let observations = refused(Plan { observations: vec![leaf(&[1 << 59])], ..plan(1, 1) });
    assert!(observations.contains("576460752303423488"), "{observations}");
    let rows = refused(plan(1 << 60, 1));
    assert!(rows.contains("1152921504606846976"), "{rows}");
    let rows = refused(plan((1 << 30) + 1, (1 << 30) + 1));
    assert!(rows.contains("1073741825") && rows.contains("1073741824"), "{rows}");
    for info_bytes in [usize::MAX, 1 << 32, u32::MAX as usize] {
        let infos = refused(Plan { info_bytes, ..plan(1, 1) });
        assert!(infos.contains(&info_bytes.to_string()), "{infos}");
    }
    let rewards = refused(Plan { reward_width: 1 << 60, ..plan(1, 1) });
    assert!(rewards.contains("a batch"), "{rewards}");
    let none = refused(Plan { reward_width: 0, ..plan(1, 1) });
    assert!(none.contains("a reward has at least one number"), "{none}");
    for max_slabs in [usize::MAX, 1 << 32, (1 << 31) + 1] {
        let slabs = refused(Plan { max_slabs, ..plan(1, 1) });
        assert!(slabs.contains(&max_slabs.to_string()), "{slabs}");
    }
}

#[test]
fn batches_are_kept_up_to_a_gibibyte_and_infos_have_room_in_proportion() {
    let with = |leaves: usize, rows: usize, batch_size: usize, dense_finals: bool| {
        let observations = vec![leaf(&[leaves])];
        Plan { observations, dense_finals, ..plan(rows, batch_size) }.sized(None)
    };
    // 2^14 rows of 2^10 numbers of 8 bytes are 2^27 bytes.
    let whole = with(1 << 10, 1 << 14, 1 << 14, false);
    assert_eq!((whole.kept(), whole.max_slabs, whole.info_bytes), (8, 9, 1 << 24));
    let small = with(1 << 10, 1 << 7, 1 << 7, false);
    assert_eq!((small.kept(), small.info_bytes), (1024, (1 << 7) * ((1 << 13) + 2048)));
    let middle = with(1 << 10, 1 << 10, 1 << 10, false);
    assert_eq!(middle.kept(), 128);
    assert_eq!(with(1 << 10, 1 << 10, 1 << 10, true).kept(), 64); // final observations count
    let parts = with(1 << 10, 1 << 10, 1 << 8, false);
    assert_eq!((parts.kept(), parts.max_slabs), (512, 512 + 2 * 4 - 1));
    let none = plan(1, 1).sized(Some(3));
    assert_eq!((none.kept(), none.max_slabs, none.info_bytes), (3, 4, 1 << 16));
    let huge = Plan { observations: vec![leaf(&[1 << 40, 1 << 40])], ..plan(3, 3) };
    refused(huge.sized(None));
}

proptest! {
    /// The oracle computes the sizes of leaves in integers that cannot wrap.
    #[test]
    fn memory_is_refused_wherever_its_actions_would_not_fit(
        shape in proptest::collection::vec(
            proptest::sample::select(vec![0, 1, 3, 1 << 20, 1 << 31, 1 << 32, 1 << 60, usize::MAX]),
            0..4,
        ),
        rows in proptest::sample::select(vec![1_usize, 2, 1 << 12]),
    ) {
        let elements = shape.iter().try_fold(1_u128, |product, &n| product.checked_mul(n as u128));
        let bytes = elements.and_then(|n| n.checked_mul(16 * rows as u128));
        let made = Memory::new(Plan { actions: vec![leaf(&shape)], ..plan(rows, rows) }, Scope::Private);
        if bytes.is_none_or(|bytes| bytes > isize::MAX as u128) {
            prop_assert!(matches!(made, Err(Error::BadPlan(_))), "{made:?}");
        }
    }
}
