//! Spaces from the nodes of a description.
#![expect(unsafe_code, reason = "reads memory of plugins, see the invariants of the module")]

use cartwheel_abi::{self as abi, Space as Node};
use cartwheel_core::space::{Bounds, Space, TextSpace};
use cartwheel_core::{DType, Leaf};

use super::text::text;

/// Most nodes of a space, most dimensions of a leaf, most elements of a `MultiDiscrete`, each of which
/// takes memory here, and most levels of spaces within spaces: more are a mistake in a table.
const MAX_NODES: usize = 1 << 16;
const MAX_DIMENSIONS: usize = 32;
const MAX_ELEMENTS: usize = 1 << 20;
const DEEPEST: usize = 32;

/// The space with these nodes.
///
/// # Safety
///
/// `nodes` points at `count` nodes, whose pointers point at as many values as the nodes say
/// (invariant 1).
pub(super) unsafe fn space(nodes: *const Node, count: usize) -> Result<Space, String> {
    if nodes.is_null() || count == 0 || count > MAX_NODES {
        return Err(format!("has {count} nodes"));
    }
    // SAFETY: as the caller promises.
    let nodes = unsafe { std::slice::from_raw_parts(nodes, count) };
    let mut rest = nodes;
    // SAFETY: as the caller promises.
    let (_, space) = unsafe { next(&mut rest, DEEPEST) }?;
    match rest {
        [] => Ok(space),
        more => Err(format!("has {} nodes behind its end", more.len())),
    }
}

/// Takes the next node with the nodes in it; returns its key.
///
/// # Safety
///
/// As [`space`].
unsafe fn next<'a>(
    rest: &mut &'a [Node],
    depth: usize,
) -> Result<(Option<&'a str>, Space), String> {
    let [node, more @ ..] = *rest else { return Err("ends before its last node".to_owned()) };
    *rest = more;
    // SAFETY: keys are texts or null.
    let key = (!node.key.is_null()).then(|| unsafe { text(node.key, "a key") }).transpose()?;
    if !matches!(node.kind, abi::TUPLE | abi::DICT) {
        // SAFETY: as the caller promises.
        return Ok((key, unsafe { leaf(node) }?));
    }
    let depth = depth.checked_sub(1).ok_or_else(|| format!("has more than {DEEPEST} levels"))?;
    if node.children > rest.len() {
        return Err(format!("says {} children, but has {} nodes", node.children, rest.len()));
    }
    let (mut parts, mut named) = (Vec::new(), Vec::new());
    for _ in 0..node.children {
        // SAFETY: as the caller promises.
        let (key, part) = unsafe { next(rest, depth) }?;
        match (node.kind, key) {
            (abi::DICT, Some(key)) => named.push((key.to_owned(), part)),
            (abi::DICT, None) => return Err("has a part of a Dict without a key".to_owned()),
            _ => parts.push(part),
        }
    }
    Ok((key, if node.kind == abi::DICT { Space::Dict(named) } else { Space::Tuple(parts) }))
}

/// # Safety
///
/// As [`space`].
unsafe fn leaf(node: &Node) -> Result<Space, String> {
    let dtype = u8::try_from(node.dtype).ok().and_then(DType::from_tag);
    let known = dtype.filter(|dtype| !matches!(dtype, DType::F16 | DType::C64 | DType::C128));
    let dtype = known.ok_or_else(|| format!("has the element type {}", node.dtype))?;
    let (kind, own) = match node.kind {
        abi::BOX => ("Box", dtype),
        abi::DISCRETE => ("Discrete", DType::I64),
        abi::MULTI_DISCRETE => ("MultiDiscrete", DType::I64),
        abi::MULTI_BINARY => ("MultiBinary", DType::I8),
        abi::TEXT => ("Text", DType::U8),
        other => {
            return Err(format!(
                "has a node of kind {other}, which this cartwheel does not know: install a newer one"
            ));
        }
    };
    if dtype != own {
        return Err(format!("has a {kind} of {}, expected {}", dtype.name(), own.name()));
    }
    if node.dimensions > MAX_DIMENSIONS || (node.dimensions > 0 && node.shape.is_null()) {
        return Err(format!("has a {kind} of {} dimensions", node.dimensions));
    }
    let shape: Vec<usize> = match node.dimensions {
        0 => Vec::new(),
        // SAFETY: as many lengths as dimensions.
        dimensions => unsafe { std::slice::from_raw_parts(node.shape, dimensions) }.to_vec(),
    };
    let row = Leaf { dtype, shape: shape.clone() };
    let bytes = row.checked_row_len().and_then(|length| length.checked_mul(dtype.size()));
    let too_large = || format!("has a {kind} of shape {shape:?}, which no memory holds");
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(too_large)?;
    let elements = row.row_len();
    if node.kind == abi::MULTI_BINARY {
        return Ok(Space::MultiBinary(shape));
    }
    if node.kind == abi::TEXT {
        // SAFETY: as the caller promises.
        return unsafe { text_space(node, &shape) };
    }
    if node.kind == abi::DISCRETE && !shape.is_empty() {
        return Err(format!("has a Discrete of shape {shape:?}"));
    }
    if node.kind == abi::MULTI_DISCRETE && elements > MAX_ELEMENTS {
        return Err(format!("has a MultiDiscrete of {elements} elements, above {MAX_ELEMENTS}"));
    }
    let shared = node.bounds == 1 && (elements != 1 || shape.is_empty());
    if (node.bounds != elements && node.bounds != 1) || node.low.is_null() || node.high.is_null() {
        let bounds = node.bounds;
        return Err(format!("has a {kind} of {elements} elements with {bounds} bounds"));
    }
    let bounds = |first: *const std::ffi::c_void| {
        // SAFETY: as many elements of the type as there are bounds.
        let bytes = unsafe { std::slice::from_raw_parts(first.cast(), node.bounds * dtype.size()) };
        Bounds::from_elements(dtype, bytes, shared).map_err(|error| format!("has {error}"))
    };
    let (low, high) = (bounds(node.low)?, bounds(node.high)?);
    if node.kind == abi::BOX {
        return Ok(Space::Box { dtype, shape, low, high });
    }
    let (starts, counts) = counted(&integers(&low, elements), &integers(&high, elements))
        .ok_or_else(|| format!("has a {kind} without values, or with more than 2^63"))?;
    Ok(match (node.kind, starts.as_slice(), counts.as_slice()) {
        (abi::DISCRETE, &[start], &[n]) => Space::Discrete { n, start },
        _ => Space::MultiDiscrete { shape, counts, starts },
    })
}

/// # Safety
///
/// As [`space`].
unsafe fn text_space(node: &Node, shape: &[usize]) -> Result<Space, String> {
    if node.low.is_null() || node.high.is_null() {
        return Err("has a Text without a charset or lengths".to_owned());
    }
    // SAFETY: as many bytes as `bounds` says.
    let charset = unsafe { std::slice::from_raw_parts(node.low.cast::<u8>(), node.bounds) };
    // SAFETY: two lengths; aligned or not.
    let [min_length, max_length] = unsafe { node.high.cast::<[usize; 2]>().read_unaligned() };
    let charset = str::from_utf8(charset).map_err(|error| format!("has a charset with {error}"))?;
    let text = TextSpace { min_length, max_length, charset: charset.to_owned() };
    if shape != [text.row_bytes()] {
        let bytes = text.row_bytes();
        return Err(format!("has a Text of {shape:?} bytes, expected [{bytes}]"));
    }
    Ok(Space::Text(text))
}

/// The bound of each element.
fn integers(bounds: &Bounds, elements: usize) -> Vec<i128> {
    match bounds {
        Bounds::Integer(bound) => vec![*bound; elements],
        Bounds::Integers(bounds) if bounds.len() == 1 => vec![bounds[0]; elements],
        Bounds::Integers(bounds) => bounds.clone(),
        _ => Vec::new(),
    }
}

/// The smallest value and the number of values of each element.
fn counted(low: &[i128], high: &[i128]) -> Option<(Vec<i64>, Vec<i64>)> {
    let pairs = low.iter().zip(high);
    let counts = pairs.map(|(low, high)| i64::try_from(high - low + 1).ok().filter(|&n| n > 0));
    let starts = low.iter().map(|&low| i64::try_from(low).ok());
    Some((starts.collect::<Option<_>>()?, counts.collect::<Option<_>>()?))
}
