//! Spaces: samples, checks of actions, exact bounds.

use cartwheel_core::DType;
use cartwheel_core::rng::Rng;
use cartwheel_core::space::{Bounds, Space, Spaces, TextSpace};

#[test]
fn samples_are_in_their_space_and_reach_its_bounds() {
    let array = |dtype, low, high| Space::shaped_box(dtype, &[2], low, high);
    let space = Space::Tuple(vec![
        Space::Discrete { n: 3, start: -1 },
        Space::multi_discrete(&[2, 4]),
        Space::MultiBinary(vec![3]),
        array(DType::U8, 0.0, 255.0),
        array(DType::F32, -2.0, 2.0),
        array(DType::F64, 1.0, f64::INFINITY),
        array(DType::F64, f64::NEG_INFINITY, f64::INFINITY),
    ]);
    let mut rng = Rng::from_seed(3);
    let samples: Vec<Vec<u8>> = (0..7).map(|leaf| space.sample(leaf, 4000, &mut rng)).collect();
    for (leaf, elements) in samples.iter().enumerate() {
        assert_eq!(elements.len(), 4000 * space.leaves()[leaf].row_bytes());
        space.check_actions(leaf, elements).unwrap();
    }
    let integers = |leaf: usize| -> Vec<i64> {
        samples[leaf].chunks(8).map(|n| i64::from_ne_bytes(n.try_into().unwrap())).collect()
    };
    let doubles = |leaf: usize| -> Vec<f64> {
        samples[leaf].chunks(8).map(|n| f64::from_ne_bytes(n.try_into().unwrap())).collect()
    };
    let floats: Vec<f32> =
        samples[4].chunks(4).map(|n| f32::from_ne_bytes(n.try_into().unwrap())).collect();
    assert_eq!((-1..2).filter(|n| !integers(0).contains(n)).count(), 0);
    assert!(integers(1).chunks(2).any(|pair| pair == [1, 3]));
    assert!((0..=255).all(|n| samples[3].contains(&n)), "every byte is drawn");
    assert!(floats.iter().all(|n| n.abs() <= 2.0) && floats.iter().any(|n| *n < -1.9));
    assert!(doubles(5).iter().all(|n| *n >= 1.0));
    assert!(doubles(6).iter().any(|n| *n < 0.0) && doubles(6).iter().any(|n| *n > 0.0));
}

fn box_of(dtype: DType, low: Bounds, high: Bounds) -> Space {
    Space::Box { dtype, shape: vec![2], low, high }
}

#[test]
fn integer_bounds_are_exact_beyond_two_to_the_53() {
    let bounds = Bounds::Integers(vec![i128::from(u64::MAX), (1 << 53) + 1]);
    let bytes = bounds.elements(DType::U64).unwrap();
    assert_eq!(bytes, [u64::MAX.to_ne_bytes(), ((1_u64 << 53) + 1).to_ne_bytes()].concat());
    assert_eq!(Bounds::from_elements(DType::U64, &bytes, false).unwrap(), bounds);
    let low = Bounds::Integer(i128::from(i64::MIN));
    let bytes = low.elements(DType::I64).unwrap();
    assert_eq!(Bounds::from_elements(DType::I64, &bytes, true).unwrap(), low);
}

#[test]
fn bounds_that_an_element_type_cannot_hold_are_refused() {
    let error = |dtype, low: Bounds, high: Bounds| {
        box_of(dtype, low, high).check("action").unwrap_err().to_string()
    };
    let all = Bounds::All;
    assert!(error(DType::U8, all(-1.0), all(1.0)).contains("uint8 has no bound -1"));
    assert!(error(DType::I64, all(0.5), all(1.0)).contains("int64 has no bound 0.5"));
    assert!(error(DType::F32, all(f64::NAN), all(1.0)).contains("float32 has no bound NaN"));
    assert!(error(DType::Bool, all(0.0), all(2.0)).contains("bool has no bound 2"));
    assert!(error(DType::I8, all(2.0), all(1.0)).contains("low bound above the high one"));
    let three = Bounds::Each(vec![0.0; 3]);
    assert!(error(DType::F32, three, all(1.0)).contains("of shape [2] has 3 bounds"));
    assert!(error(DType::C64, all(0.0), all(1.0)).contains("complex64 has no bound 0"));
    // As in Gymnasium, an integer box without bounds has those of its type.
    let open = box_of(DType::I16, all(f64::NEG_INFINITY), all(f64::INFINITY));
    open.check("action").unwrap();
    for dtype in [DType::I8, DType::F32] {
        box_of(dtype, all(1.0), all(1.0)).check("action").unwrap(); // of one value
    }
}

#[test]
fn keys_and_counts_that_gymnasium_would_change_are_refused() {
    let two = || Space::discrete(2);
    let dict = |keys: [&str; 2]| Space::Dict(keys.map(|key| (key.to_owned(), two())).to_vec());
    assert!(dict(["a", "b"]).check("observation").is_ok());
    for keys in [["b", "a"], ["a", "a"]] {
        let nested = Space::Tuple(vec![two(), dict(keys)]);
        let error = nested.check("observation").unwrap_err().to_string();
        assert!(error.starts_with("the observation.1 space has the keys"), "{error}");
        assert!(error.contains("order them alphabetically, each once"), "{error}");
    }
    let sorted = Space::dict([("b", two()), ("a", Space::discrete(3))]);
    assert_eq!(sorted.check("observation"), Ok(()));
    for bad in [
        Space::discrete(0),
        Space::Discrete { n: 2, start: i64::MAX },
        Space::multi_discrete(&[2, 0]),
        Space::MultiDiscrete { shape: vec![2, 2], counts: vec![2; 3], starts: vec![0; 4] },
    ] {
        assert!(bad.check("action").is_err(), "{bad}");
    }
}

#[test]
fn actions_outside_their_space_are_refused_with_row_and_value() {
    let starts = vec![0, 10, -5, 0];
    let space = Space::MultiDiscrete { shape: vec![2, 2], counts: vec![2, 3, 4, 5], starts };
    let bytes = |rows: &[[i64; 4]]| rows.concat().iter().flat_map(|n| n.to_ne_bytes()).collect();
    let good: Vec<u8> = bytes(&[[0, 10, -5, 0], [1, 12, -2, 4]]);
    assert_eq!(space.check_actions(0, &good), Ok(()));
    let bad: Vec<u8> = bytes(&[[0, 10, -5, 0], [1, 12, -1, 4]]);
    let error = space.check_actions(0, &bad).unwrap_err().to_string();
    assert!(error.starts_with("action -1 of row 1 is not in MultiDiscrete"), "{error}");
    let flags = Space::integer_box(DType::Bool, &[3], 0, 1);
    assert_eq!(flags.check_actions(0, &[0, 1, 1]), Ok(()));
    let error = flags.check_actions(0, &[0, 1, 1, 0, 2, 0]).unwrap_err().to_string();
    assert_eq!(error, "action 2 of row 1 is not in Box([3], bool)");
}

#[test]
fn a_text_is_read_as_it_was_written_and_leaves_nothing_behind() {
    let space = Space::text(5, "abé€");
    let leaves = space.leaves();
    assert_eq!((leaves[0].dtype, leaves[0].row_len()), (DType::U8, 4 + 5 * 3));
    let mut row = vec![0xa5; leaves[0].row_len()];
    assert_eq!(TextSpace::read(&row), None, "a length that the row has no room for");
    for text in ["€é€é€", "", "ab"] {
        TextSpace::write(&mut row, text);
        assert_eq!(TextSpace::read(&row), Some(text));
        assert!(row[4 + text.len()..].iter().all(|&byte| byte == 0));
    }
    row[4..6].copy_from_slice(&[0xff, 0xfe]);
    assert_eq!(TextSpace::read(&row), None, "bytes that are not UTF-8");
}

#[test]
fn texts_outside_of_their_space_are_told_apart() {
    let text = TextSpace { min_length: 1, max_length: 3, charset: "abé".to_owned() };
    assert_eq!(text.misfit("éab"), None);
    let long = "has 4 characters, expected 1 to 3: \"aaaa\"";
    assert_eq!(text.misfit("aaaa").as_deref(), Some(long));
    assert!(text.misfit("").is_some());
    assert_eq!(text.misfit("ax").as_deref(), Some("has 'x', which is not in the charset: \"ax\""));
}

#[test]
fn spaces_of_texts_that_gymnasium_refuses_are_refused() {
    let text = |min_length, max_length, charset: &str| {
        Space::Text(TextSpace { min_length, max_length, charset: charset.to_owned() })
    };
    assert_eq!(text(0, 3, "ab").check("observation"), Ok(()));
    for bad in
        [text(0, 0, "a"), text(3, 2, "a"), text(0, 2, ""), text(0, 2, "aba"), text(0, 1 << 20, "a")]
    {
        assert!(bad.check("observation").is_err(), "{bad}");
    }
    let spaces = Spaces { observation: text(0, 3, "ab"), action: text(0, 3, "ab") };
    let error = spaces.check().unwrap_err().to_string();
    assert!(error.contains("the action space has Text(3): actions are numbers"), "{error}");
}
