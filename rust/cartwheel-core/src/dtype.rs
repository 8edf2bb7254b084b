//! Element types.

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])* $name:ident = $size:literal, $numpy:literal;)*) => {
        /// The element types of arrays that are passed between processes as plain bytes.
        ///
        /// The discriminant is the tag used in shared memory.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DType { $($(#[doc = $doc])* $name,)* }

        impl DType {
            /// Every dtype, in the order of their tags.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(Self::$name => $size,)* }
            }

            /// Its NumPy name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $numpy,)* }
            }
        }
    };
}

dtypes! {
    /// One byte, zero or one.
    Bool = 1, "bool";
    /// Signed 8 bits.
    I8 = 1, "int8";
    /// Signed 16 bits.
    I16 = 2, "int16";
    /// Signed 32 bits.
    I32 = 4, "int32";
    /// Signed 64 bits.
    I64 = 8, "int64";
    /// Unsigned 8 bits.
    U8 = 1, "uint8";
    /// Unsigned 16 bits.
    U16 = 2, "uint16";
    /// Unsigned 32 bits.
    U32 = 4, "uint32";
    /// Unsigned 64 bits.
    U64 = 8, "uint64";
    /// IEEE half precision.
    F16 = 2, "float16";
    /// IEEE single precision.
    F32 = 4, "float32";
    /// IEEE double precision.
    F64 = 8, "float64";
    /// Two single-precision floats.
    C64 = 8, "complex64";
    /// Two double-precision floats.
    C128 = 16, "complex128";
}

impl DType {
    /// The smallest and the largest integer of this type; `None` for floats and complex numbers.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        let bits = 8 * self.size();
        match self {
            Self::Bool => Some((0, 1)),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => {
                Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
            }
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some((0, (1 << bits) - 1)),
            Self::F16 | Self::F32 | Self::F64 | Self::C64 | Self::C128 => None,
        }
    }

    /// The tag used in shared memory and in info streams.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The dtype with this tag, if there is one.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// The dtype with this NumPy name, if cartwheel supports it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn dtypes_are_found_again_by_tag_and_by_name() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_tag(dtype.tag()), Some(dtype));
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_tag(200), None);
        assert_eq!(DType::from_name("float128"), None);
    }

    #[test]
    fn integers_have_the_range_of_their_type() {
        let of = |dtype: DType| dtype.integer_range().expect("integers");
        assert_eq!(of(DType::Bool), (0, 1));
        assert_eq!(of(DType::I8), (i8::MIN.into(), i8::MAX.into()));
        assert_eq!(of(DType::I64), (i64::MIN.into(), i64::MAX.into()));
        assert_eq!(of(DType::U16), (0, u16::MAX.into()));
        assert_eq!(of(DType::U64), (0, u64::MAX.into()));
        assert_eq!(DType::F64.integer_range(), None);
    }
}
