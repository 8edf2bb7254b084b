//! Values of parameters: what `get_attr` returns and `set_attr` takes, as one value of the info
//! format.

use std::fmt;

use cartwheel_core::info::{Buffer, InfoReader, InfoWriter, Value};
use cartwheel_core::{DType, Error};

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ParameterValue {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond `i64`; in Python a `np.uint64`.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A `float32`; in Python a `np.float32`.
    Float32(f32),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<ParameterValue>),
    /// A tuple. A tuple that is set arrives as a list.
    Tuple(Vec<ParameterValue>),
    /// A NumPy array.
    Array(ParameterArray),
}

/// A NumPy array as the value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterArray {
    dtype: DType,
    shape: Vec<usize>,
    /// Row-major, in the machine's byte order.
    elements: Vec<u8>,
}

impl ParameterArray {
    /// An array of these elements: bytes, row-major.
    ///
    /// # Panics
    ///
    /// When the elements do not fill the shape.
    pub fn new(dtype: DType, shape: &[usize], elements: Vec<u8>) -> Self {
        let len = shape.iter().product::<usize>() * dtype.size();
        assert_eq!(elements.len(), len, "elements of shape {shape:?}");
        Self { dtype, shape: shape.to_vec(), elements }
    }

    /// The type of an element.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The bytes of the elements, row-major.
    pub fn elements(&self) -> &[u8] {
        &self.elements
    }

    /// The items along the first dimension of the array: numbers, or arrays; the number itself if
    /// there is not a dimension.
    fn parts(&self) -> Vec<ParameterValue> {
        let Some((count, inner)) = self.shape.split_first() else {
            return vec![number(self.dtype, &self.elements)];
        };
        let bytes = inner.iter().product::<usize>() * self.dtype.size();
        let part = |at: usize| {
            let elements = &self.elements[at * bytes..(at + 1) * bytes];
            if inner.is_empty() {
                return number(self.dtype, elements);
            }
            ParameterValue::Array(Self::new(self.dtype, inner, elements.to_vec()))
        };
        (0..*count).map(part).collect()
    }
}

/// A number from its bytes; nothing, if environments have no numbers of this type.
fn number(dtype: DType, bytes: &[u8]) -> ParameterValue {
    macro_rules! of {
        ($type:ident) => {
            $type::from_ne_bytes(bytes.try_into().expect("the bytes of one element"))
        };
    }
    let int = |int: i64| ParameterValue::Int(int);
    match dtype {
        DType::Bool => ParameterValue::Bool(bytes != [0]),
        DType::I8 => int(of!(i8).into()),
        DType::I16 => int(of!(i16).into()),
        DType::I32 => int(of!(i32).into()),
        DType::I64 => int(of!(i64)),
        DType::U8 => int(of!(u8).into()),
        DType::U16 => int(of!(u16).into()),
        DType::U32 => int(of!(u32).into()),
        DType::U64 => of!(u64).into(),
        DType::F32 => ParameterValue::Float32(of!(f32)),
        DType::F64 => ParameterValue::Float(of!(f64)),
        DType::F16 | DType::C64 | DType::C128 => ParameterValue::None,
    }
}

impl From<u64> for ParameterValue {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Unsigned(number), Self::Int)
    }
}

impl ParameterValue {
    /// The parts of a list, or of an array along its first dimension; `None` for other values.
    pub fn parts(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(parts) | Self::Tuple(parts) => Some(parts.clone()),
            Self::Array(array) => Some(array.parts()),
            _ => None,
        }
    }

    /// Writes the value in the info format.
    pub fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self {
            Self::None => writer.none(),
            Self::Bool(flag) => writer.bool(*flag),
            Self::Int(int) => writer.int(*int),
            Self::Unsigned(number) => writer.scalar(DType::U64, &number.to_ne_bytes()),
            Self::Float(float) => writer.float(*float),
            Self::Float32(float) => writer.scalar(DType::F32, &float.to_ne_bytes()),
            Self::Text(text) => writer.text(text),
            Self::List(parts) | Self::Tuple(parts) => {
                match self {
                    Self::Tuple(_) => writer.tuple(parts.len()),
                    _ => writer.list(parts.len()),
                }
                for part in parts {
                    part.write(writer);
                }
            }
            Self::Array(array) => writer.array(array.dtype, &array.shape, &array.elements),
        }
    }

    /// Reads a value from the info format.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`] for what a parameter cannot be: a dictionary, or an object of the
    /// calling language; [`Error::MalformedInfo`].
    pub fn read(reader: &mut InfoReader<'_>) -> Result<Self, Error> {
        Self::read_within(reader, cartwheel_core::info::DEEPEST)
    }

    fn read_within(reader: &mut InfoReader<'_>, depth: usize) -> Result<Self, Error> {
        let refused = |what: &str| Err(Error::BadParameter(format!("cannot be {what}")));
        Ok(match reader.value()? {
            Value::None => Self::None,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Int(int) => Self::Int(int),
            Value::Float(float) => Self::Float(float),
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Scalar(dtype, bytes) => number(dtype, bytes),
            Value::Array(dtype, shape, elements) => {
                let length = |length: &[u8; 4]| u32::from_le_bytes(*length) as usize;
                let shape: Vec<usize> = shape.iter().map(length).collect();
                Self::Array(ParameterArray::new(dtype, &shape, elements.to_vec()))
            }
            Value::Tuple(parts) | Value::List(parts) => {
                let Some(depth) = depth.checked_sub(1) else {
                    return refused("so deep a list");
                };
                let parts = (0..parts).map(|_| Self::read_within(reader, depth));
                Self::List(parts.collect::<Result<_, _>>()?)
            }
            Value::Dict(_) => return refused("a dictionary"),
            Value::Foreign(_) | Value::Object(_) => return refused("an object of Python"),
        })
    }
}

impl fmt::Display for ParameterValue {
    /// As Python writes it; the first values of a long list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(flag) => f.write_str(if *flag { "True" } else { "False" }),
            Self::Int(int) => write!(f, "{int}"),
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Float32(float) => write!(f, "{float:?}"),
            Self::Text(text) => write_text(f, text),
            Self::List(parts) | Self::Tuple(parts) => write_list(f, parts),
            Self::Array(array) => write_list(f, &array.parts()),
        }
    }
}

/// The most characters of a text, and the most values of a list, that an error shows.
const SHOWN: (usize, usize) = (60, 6);

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let shown: String = text.chars().take(SHOWN.0).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    write!(f, "'{shown}{more}'")
}

fn write_list(f: &mut fmt::Formatter<'_>, values: &[ParameterValue]) -> fmt::Result {
    f.write_str("[")?;
    for (at, value) in values.iter().take(SHOWN.1).enumerate() {
        write!(f, "{}{value}", if at == 0 { "" } else { ", " })?;
    }
    if values.len() > SHOWN.1 {
        return write!(f, ", …] ({} values)", values.len());
    }
    f.write_str("]")
}
