//! Parameters and infos of every type, and spaces of every kind, cross the ABI unchanged.

use std::sync::Arc;

use cartwheel::{
    Bounds, DType, Env, Error, Failure, Flat, InfoWriter, List, NoOptions, Parameter,
    ParameterArray, ParameterValue, Rng, Space, Spaces, Transition, VectorEnv, wrong,
};
use cartwheel_abi as abi;

use crate::support::{HostKind, HostRows, find, shown, shown_info};

cartwheel::info! {
    #[derive(Default)]
    struct Inner {
        deep: Vec<String>,
        absent: Option<u8>,
    }
}

cartwheel::info! {
    struct Everything {
        a: bool,
        b: i8,
        c: i16,
        d: i32,
        e: i64,
        f: u8,
        g: u16,
        h: u32,
        i: u64,
        j: f32,
        k: f64,
        l: &'static str,
        m: String,
        n: Vec<f32>,
        o: [[u8; 3]; 2],
        p: [bool; 2],
        q: Vec<[i16; 2]>,
        r: [&'static str; 2],
        s: Option<i64>,
        t: Option<i64>,
        u: Inner,
        v: Vec<Inner>,
        w: Vec<Vec<i64>>,
        x: usize,
        y: isize,
        z: char,
        aa: List<u8>,
        bb: [usize; 1],
    }
}

const INFO: &str = "a: Bool(true), b: int8[255], c: int16[254, 255], d: int32[253, 255, 255, 255], \
    e: Int(-4), f: uint8[5], g: uint16[6, 0], h: uint32[7, 0, 0, 0], \
    i: uint64[255, 255, 255, 255, 255, 255, 255, 255], j: float32[0, 0, 192, 63], k: Float(-0.0), \
    l: Text(\"static\"), m: Text(\"owned\"), n: float32[1][0, 0, 128, 63], \
    o: uint8[2, 3][1, 2, 3, 4, 5, 6], p: bool[2][1, 0], q: [int16[2][1, 0, 2, 0]], \
    r: [Text(\"x\"), Text(\"y\")], t: Int(9), u: {deep: [Text(\"text\")]}, v: [{deep: []}], \
    w: [int64[1][3, 0, 0, 0, 0, 0, 0, 0], int64[0][]], x: Int(3), y: Int(-1), z: Text(\"é\"), \
    aa: [uint8[4], uint8[5]], bb: int64[1][6, 0, 0, 0, 0, 0, 0, 0]";

/// Parameters of every type.
#[derive(Debug, Clone, PartialEq, Default)]
struct Parameters {
    flag: bool,
    small: i8,
    large: u64,
    signed: isize,
    single: f32,
    double: f64,
    text: String,
    maybe: Option<f64>,
    numbers: Vec<u16>,
    matrix: [[f32; 2]; 2],
    words: Vec<String>,
    flags: [bool; 2],
    nested: Vec<Vec<i64>>,
}

struct Values {
    all: Parameters,
}

cartwheel::options! {
    struct Options {
        unsorted: bool,
    }
}

impl Env for Values {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = i64;
    type Info = Everything;
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        Spaces { observation: Space::discrete(2), action: Space::discrete(2) }
    }

    fn new(_: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let matrix = [[1.0, 2.0], [3.0, 4.0]];
        Ok(Self { all: Parameters { matrix, ..Parameters::default() } })
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, _: i64, _: &mut Rng) -> Result<Transition, Failure> {
        Ok(Transition::RESET)
    }

    fn observe(&self, observation: &mut i64) {
        *observation = 0;
    }

    fn info(&self) -> Everything {
        Everything {
            a: true,
            b: -1,
            c: -2,
            d: -3,
            e: -4,
            f: 5,
            g: 6,
            h: 7,
            i: u64::MAX,
            j: 1.5,
            k: -0.0,
            l: "static",
            m: "owned".to_owned(),
            n: vec![1.0],
            o: [[1, 2, 3], [4, 5, 6]],
            p: [true, false],
            q: vec![[1, 2]],
            r: ["x", "y"],
            s: None,
            t: Some(9),
            u: Inner { deep: vec!["text".to_owned()], absent: None },
            v: vec![Inner::default()],
            w: vec![vec![3], vec![]],
            x: 3,
            y: -1,
            z: 'é',
            aa: vec![4, 5].into(),
            bb: [6],
        }
    }

    cartwheel::parameters! {
        flag: all.flag, small: all.small, large: all.large, signed: all.signed, single: all.single,
        double: all.double, text: all.text, maybe: all.maybe, numbers: all.numbers, matrix: all.matrix,
        words: all.words, flags: all.flags, nested: all.nested,
    }

    fn check_parameter(&self, name: &str) -> Result<(), Error> {
        if name == "numbers" && self.all.numbers.len() > 3 {
            return Err(wrong("at most 3 numbers", &self.all.numbers.get()));
        }
        assert!(name != "numbers" || !self.all.numbers.contains(&13), "an unlucky number");
        Ok(())
    }
}

cartwheel::table! {
    static PLUGIN { "values/Values-v0" => Values }
}

#[test]
fn infos_of_every_type_are_written() {
    let kind = HostKind::new(find(&PLUGIN, "values/Values-v0"), "").unwrap();
    let mut rows = HostRows::new(&kind, 2).unwrap();
    rows.all(abi::RESET);
    let infos = rows.take_infos();
    assert_eq!(infos.iter().map(|info| info.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(
        shown_info(&infos[1].1),
        INFO.replace("q: [int16[2][1, 0, 2, 0]]", "q: int16[1, 2][1, 0, 2, 0]")
    );
}

fn array<const N: usize>(dtype: DType, shape: &[usize], elements: [u8; N]) -> ParameterValue {
    ParameterValue::Array(ParameterArray::new(dtype, shape, elements.to_vec()))
}

#[test]
fn parameters_of_every_type_are_read_and_set() {
    use ParameterValue as V;
    let kind = HostKind::new(find(&PLUGIN, "values/Values-v0"), "").unwrap();
    assert_eq!(kind.parameters.len(), 13);
    let mut rows = HostRows::new(&kind, 1).unwrap();
    let text = |text: &str| V::Text(text.to_owned());
    let ints = |ints: &[i64]| V::List(ints.iter().map(|&int| V::Int(int)).collect());
    // Name, value that is set, value that is read.
    let cases = [
        ("flag", V::Bool(true), "Bool(true)"),
        ("small", V::Int(-128), "Int(-128)"),
        ("large", V::Unsigned(u64::MAX), "uint64[255, 255, 255, 255, 255, 255, 255, 255]"),
        ("large", V::Int(3), "Int(3)"),
        ("signed", V::Int(i64::MIN), "Int(-9223372036854775808)"),
        ("single", V::Float(0.5), "float32[0, 0, 0, 63]"),
        ("double", V::Float32(0.5), "Float(0.5)"),
        ("double", V::Int(-3), "Float(-3.0)"),
        ("text", text("hello"), "Text(\"hello\")"),
        ("maybe", V::Float(1.0), "Float(1.0)"),
        ("maybe", V::None, "None"),
        ("numbers", ints(&[1, 258]), "uint16[2][1, 0, 2, 1]"),
        ("numbers", array(DType::U8, &[1], [9]), "uint16[1][9, 0]"),
        (
            "matrix",
            V::List(vec![ints(&[0, 0]), array(DType::F32, &[2], [0; 8])]),
            "float32[2, 2][0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        ),
        ("words", V::List(vec![text("a"), text("b")]), "[Text(\"a\"), Text(\"b\")]"),
        ("flags", array(DType::Bool, &[2], [1, 0]), "bool[2][1, 0]"),
        (
            "nested",
            V::List(vec![ints(&[1]), ints(&[])]),
            "[int64[1][1, 0, 0, 0, 0, 0, 0, 0], int64[0][]]",
        ),
    ];
    for (name, value, expected) in cases {
        let mut bytes = InfoWriter::new();
        value.write(&mut bytes);
        rows.set(0, name, bytes.stream()).unwrap();
        assert_eq!(shown(&rows.get(0, name).unwrap()), expected, "{name}");
    }
    let refused = [
        ("flag", V::Int(1), "must be a truth value, got 1"),
        ("small", V::Int(128), "must be an integer from -128 to 127, got 128"),
        ("large", V::Int(-1), "must be an integer from 0 to 18446744073709551615, got -1"),
        ("small", V::Float(1.0), "must be an integer, got 1.0"),
        ("single", V::Float(1e40), "must be a number of float32, at most 3.4e38, got 1e40"),
        ("double", text("1"), "must be a number, got '1'"),
        ("text", V::None, "must be text, got None"),
        ("numbers", ints(&[1, -1]), "element 1 must be an integer from 0 to 65535, got -1"),
        ("numbers", ints(&[1, 2, 3, 4]), "must be at most 3 numbers, got [1, 2, 3, 4]"),
        ("matrix", ints(&[1, 2, 3]), "must be 2 values, got [1, 2, 3]"),
        ("words", V::Int(1), "must be a list or an array, got 1"),
    ];
    for (name, value, expected) in refused {
        let (mut bytes, before) = (InfoWriter::new(), rows.get(0, name));
        value.write(&mut bytes);
        let refusal = rows.set(0, name, bytes.stream()).unwrap_err();
        assert_eq!(refusal, (abi::FAILED, expected.to_owned()));
        assert_eq!(rows.get(0, name), before, "{name} keeps its value");
    }
    let mut dictionary = InfoWriter::new();
    dictionary.dict(0);
    let refusal = rows.set(0, "flag", dictionary.stream()).unwrap_err();
    assert_eq!(refusal, (abi::FAILED, "cannot be a dictionary".to_owned()));
}

#[test]
fn a_parameter_whose_check_panics_keeps_its_value() {
    let kind = HostKind::new(find(&PLUGIN, "values/Values-v0"), "").unwrap();
    let mut rows = HostRows::new(&kind, 1).unwrap();
    let (mut bytes, before) = (InfoWriter::new(), rows.get(0, "numbers").unwrap());
    ParameterValue::List(vec![ParameterValue::Int(13)]).write(&mut bytes);
    let (code, text) = rows.set(0, "numbers", bytes.stream()).unwrap_err();
    assert_eq!((code, text.starts_with("an unlucky number")), (abi::PANICKED, true), "{text}");
    assert_eq!(rows.get(0, "numbers").unwrap(), before);
    let mut envs = VectorEnv::<Values>::builder(1).build().unwrap();
    let refused = envs.set_parameter("numbers", &[vec![13_u16]]).unwrap_err().to_string();
    let expected = "parameter \"numbers\" made the environment panic: an unlucky number";
    assert!(refused.starts_with(expected), "{refused}");
}

#[test]
fn a_matrix_is_read_as_an_array_of_two_dimensions() {
    let matrix = [[1_u8, 2], [3, 4], [5, 6]];
    assert_eq!(matrix.get(), array(DType::U8, &[3, 2], [1, 2, 3, 4, 5, 6]));
}

cartwheel::view! {
    /// A part with every kind of array.
    struct Parts, PartsMut, PartsRef {
        bits: [i8; 3],
        counts: [[i64; 2]; 2],
        flags: [bool; 2],
        on: bool,
        pixels: Flat<u8>,
        wide: [u64; 1],
    }
}

/// Observes its action.
struct Spacious(Option<Vec<u8>>);

cartwheel::options! {
    struct Change {
        /// Replaces a part of the observation space by `Discrete(2)`, or removes it.
        replace: String,
        remove: String,
    }
}

impl Env for Spacious {
    type Options = Change;
    type ResetOptions = NoOptions;
    type Action = (i64, Parts);
    type Observation = (i64, Parts);
    type Info = ();
    type Shared = ();

    fn spaces(options: &Change, (): &()) -> Spaces {
        let of = |low: f64, high: f64| (Bounds::All(low), Bounds::All(high));
        let ((low, high), shape) = (of(0.0, 255.0), vec![2, 2]);
        let (counts, starts) = (vec![3, 4, 5, 6], vec![0, -1, 7, i64::MAX - 6]);
        let last = (1_i128 << 64) - 1;
        let parts = [
            ("bits", Space::MultiBinary(vec![3])),
            ("counts", Space::MultiDiscrete { shape: vec![2, 2], counts, starts }),
            ("flags", Space::integer_box(DType::Bool, &[2], 0, 1)),
            ("on", Space::integer_box(DType::Bool, &[], 0, 1)),
            ("pixels", Space::Box { dtype: DType::U8, shape, low, high }),
            ("wide", Space::integer_box(DType::U64, &[1], last - 1, last)),
        ];
        let action =
            Space::Tuple(vec![Space::Discrete { n: 2, start: -1 }, Space::dict(parts.clone())]);
        let parts = parts.into_iter().filter(|(key, _)| *key != options.remove);
        let parts = parts.map(|(key, part)| {
            (key.to_owned(), if key == options.replace { Space::discrete(2) } else { part })
        });
        let observation =
            Space::Tuple(vec![Space::Discrete { n: 2, start: -1 }, Space::Dict(parts.collect())]);
        Spaces { observation, action }
    }

    fn new(_: &Change, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self(None))
    }

    fn reset(&mut self, _: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.0 = None;
        Ok(())
    }

    fn step(
        &mut self,
        (first, parts): (i64, PartsRef<'_>),
        _: &mut Rng,
    ) -> Result<Transition, Failure> {
        assert!(parts.pixels.len() == 4 && (-1..1).contains(&first));
        self.0 = Some(vec![u8::from(parts.on), u8::from(parts.flags[1]), parts.pixels[3]]);
        let reward = if parts.wide[0] == u64::MAX { 1.0 } else { 0.0 };
        Ok(Transition { reward, terminated: parts.bits[2] == 1, truncated: false })
    }

    fn observe(&self, (first, parts): (&mut i64, PartsMut<'_>)) {
        *first = -1;
        let seen = self.0.clone().unwrap_or(vec![0; 3]);
        *parts.on = seen[0] == 1;
        parts.flags[1] = seen[1] == 1;
        parts.pixels.fill(seen[2]);
        *parts.bits = [1, 0, 1];
        *parts.counts = [[0, -1], [7, i64::MAX]];
        parts.wide[0] = u64::MAX;
    }

    fn info(&self) {}
}

cartwheel::table! {
    static SPACES { "values/Spacious-v0" => Spacious }
}

#[test]
fn spaces_of_every_kind_cross_as_nodes() {
    let kind = HostKind::new(find(&SPACES, "values/Spacious-v0"), "").unwrap();
    let expected = Spacious::spaces(&Change::default(), &());
    // Bounds of integers come back as integers; Null's floats are such bounds.
    let integers = |space: &Space| {
        format!("{space:?}").replace("All(0.0)", "Integer(0)").replace("All(255.0)", "Integer(255)")
    };
    assert_eq!(integers(&kind.spaces.observation), integers(&expected.observation));
    assert_eq!(integers(&kind.spaces.action), integers(&expected.action));
}

#[test]
fn bools_are_read_only_as_zero_and_one_and_written_over_any_byte() {
    let kind = HostKind::new(find(&SPACES, "values/Spacious-v0"), "").unwrap();
    let mut rows = HostRows::new(&kind, 2).unwrap();
    rows.observations.fill(0xff); // no `bool` has this byte
    rows.all(abi::RESET);
    let flags = |rows: &HostRows<'_>| (rows.observations.leaf(3), rows.observations.leaf(4));
    assert_eq!(flags(&rows), (vec![0; 4], vec![0; 2]));
    let mut rng = Rng::from_seed(0);
    for leaf in 0..7 {
        let sampled = kind.spaces.action.sample(leaf, 2, &mut rng);
        kind.spaces.action.check_actions(leaf, &sampled).unwrap();
        rows.actions.store(leaf, &sampled);
    }
    rows.actions.store(3, &[0, 1, 1, 1]);
    rows.actions.store(4, &[1, 0]);
    rows.observations.fill(0xff);
    rows.all(abi::STEP);
    assert_eq!(flags(&rows), (vec![0, 1, 0, 1], vec![1, 0]));
    rows.actions.store(4, &[1, 2]);
    rows.commands.fill(abi::STEP);
    let (code, row, text) = rows.run_some((0, 2), 0, None);
    assert_eq!((code, row), (abi::PANICKED, 1));
    assert!(text.starts_with("a truth value is the byte 2, expected 0 or 1 ("), "{text}");
}

#[test]
fn a_space_that_the_type_does_not_fit_is_refused_with_both() {
    let error = |options: &str| {
        HostKind::new(find(&SPACES, "values/Spacious-v0"), options).map(|_| ()).unwrap_err()
    };
    let sees = "the observation type sees (int64[], {bits: int8[3], counts: int64[2, 2], \
                flags: bool[2], on: bool[], pixels: uint8 of any shape, wide: uint64[1]}); \
                the observation space has (int64[], {";
    let replaced = error(r#"{"replace": "on"}"#);
    let rest = "bits: int8[3], counts: int64[2, 2], flags: bool[2], on: int64[], \
                pixels: uint8[2, 2], wide: uint64[1]})";
    assert_eq!(replaced, format!("{sees}{rest}: the type of a Discrete is `i64`"));
    let removed = error(r#"{"remove": "bits"}"#);
    assert_eq!(
        removed,
        format!("{sees}{}", rest.replace("bits: int8[3], ", "").replace("on: int64", "on: bool"))
    );
}
