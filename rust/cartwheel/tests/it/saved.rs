//! Values of the types of states come back to the last bit, and other bytes are refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;

use cartwheel::{Rng, State};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tile {
    Floor,
    Wall,
    Door,
}

cartwheel::state! { impl State for enum Tile { Floor, Wall, Door } }

/// Saves and loads a value, and loads its bytes when they were cut.
fn comes_back<T: State + Debug + PartialEq>(value: &T) {
    let mut bytes = Vec::new();
    value.save(&mut bytes);
    let rest = &mut bytes.as_slice();
    assert_eq!(T::load(rest).unwrap(), *value);
    assert!(rest.is_empty(), "{value:?} is loaded completely");
    for len in 0..bytes.len() {
        assert!(T::load(&mut &bytes[..len]).is_err(), "{len} bytes of {value:?}");
    }
}

#[test]
fn collections_boxes_characters_and_enums_come_back() {
    comes_back(&VecDeque::from([3_usize, 1, 2]));
    comes_back(&BTreeSet::from([-1_i8, 5, 3]));
    comes_back(&BTreeMap::from([("deck".to_owned(), vec!['♠', 'a']), (String::new(), vec![])]));
    comes_back(&Box::new((1.5_f32, Some(true), ())));
    comes_back(&[Tile::Wall, Tile::Floor, Tile::Door]);
}

#[test]
fn a_stream_of_random_numbers_continues_with_the_half_that_it_kept() {
    let mut rng = Rng::from_seed(3);
    comes_back(&rng);
    rng.next_u32();
    comes_back(&rng);
    let mut bytes = Vec::new();
    rng.save(&mut bytes);
    let mut loaded = Rng::load(&mut bytes.as_slice()).unwrap();
    assert_eq!(loaded.next_u32(), rng.next_u32());
    assert_eq!(loaded.next_u64(), rng.next_u64());
}

#[test]
fn bytes_that_no_value_has_are_refused() {
    let refused = char::load(&mut [0, 0xd8, 0, 0].as_slice()).unwrap_err();
    assert_eq!(refused.to_string(), "a character is saved as 0xd800");
    assert_eq!(Tile::load(&mut [3].as_slice()).unwrap_err().to_string(), "a Tile is saved as 3");
    let even = [0; 40]; // its increment would be even
    assert!(Rng::load(&mut even.as_slice()).unwrap_err().to_string().contains("random numbers"));
}
