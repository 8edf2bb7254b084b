//! Every row of every leaf has its own, aligned place.

use cartwheel::schedule::shards;
use cartwheel::space::{DType, LEAF_ALIGN, Layout, Leaf};
use proptest::prelude::*;

fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
    let dtype = proptest::sample::select(DType::ALL);
    let shape = proptest::collection::vec(0_usize..5, 0..4);
    let leaf = (dtype, shape).prop_map(|(dtype, shape)| Leaf { dtype, shape });
    proptest::collection::vec(leaf, 0..6)
}

proptest! {
    #[test]
    fn places_are_aligned_disjoint_and_inside(leaves in leaves(), rows in 1_usize..70) {
        let layout = Layout::new(&leaves, rows).expect("small");
        let mut places: Vec<_> = (0..leaves.len())
            .map(|leaf| (layout.leaf_offset(leaf), layout.leaf(leaf).row_bytes() * rows))
            .collect();
        places.push((layout.rewards_offset(), 8 * rows));
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
    }

    #[test]
    fn shards_tile_the_rows_evenly(rows in 1_usize..500, workers in 1_usize..40) {
        let dealt = shards(rows, workers);
        prop_assert_eq!(dealt.len(), rows.min(workers));
        let mut next = 0;
        for shard in &dealt {
            prop_assert_eq!(shard.start, next);
            next = shard.end;
            prop_assert!(shard.len() == rows / dealt.len() || shard.len() == rows / dealt.len() + 1);
        }
        prop_assert_eq!(next, rows);
    }
}

#[test]
fn a_batch_beyond_the_address_space_is_an_error() {
    let leaf = Leaf { dtype: DType::F64, shape: vec![usize::MAX / 16, 3] };
    assert!(Layout::new(&[leaf], 4).is_err());
}

#[test]
fn dtypes_are_found_again_by_tag_and_by_name() {
    for &dtype in DType::ALL {
        assert_eq!(DType::from_tag(dtype.tag()), Some(dtype));
        assert_eq!(DType::from_name(dtype.name()), Some(dtype));
    }
    assert_eq!(DType::from_tag(200), None);
    assert_eq!(DType::from_name("float128"), None);
}
