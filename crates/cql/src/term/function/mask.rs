//! The `mask_*` functions.

use types::value::{pack_components, pack_list, pack_vector};
use types::{CqlType, Decimal, Duration, Uuid};

use crate::error::CqlError;
use crate::term::function::Function;

/// How a value is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    Null,
    Default,
    Replace,
    Inner,
    Outer,
    /// The digest of the value, by the algorithm that the second argument names.
    Hash,
}

/// What stands for masked characters unless the call says otherwise.
const PADDING: u16 = b'*' as u16;

/// Runs a masking function.
pub fn mask(
    mask: Mask,
    function: &Function,
    arguments: &[Option<&[u8]>],
) -> Result<Option<Vec<u8>>, CqlError> {
    let first = arguments.first().copied().flatten();
    let second = arguments.get(1).copied().flatten();
    match mask {
        Mask::Null => Ok(None),
        Mask::Default => masked(function.returns(), types::MAX_DEPTH).map(Some),
        Mask::Replace => Ok(second.map(<[u8]>::to_vec)),
        Mask::Inner | Mask::Outer => partial(mask, function, arguments),
        Mask::Hash => {
            let Some(value) = first else { return Ok(None) };
            let name = second.map_or("SHA-256".into(), String::from_utf8_lossy);
            hash(&name, value).map(Some)
        }
    }
}

fn hash(algorithm: &str, value: &[u8]) -> Result<Vec<u8>, CqlError> {
    use md5::Md5;
    use sha1::Sha1;
    use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
    Ok(match algorithm.to_ascii_uppercase().as_str() {
        "SHA-256" | "SHA256" => Sha256::digest(value).to_vec(),
        "SHA-512" | "SHA512" => Sha512::digest(value).to_vec(),
        "SHA-384" | "SHA384" => Sha384::digest(value).to_vec(),
        "SHA-224" | "SHA224" => Sha224::digest(value).to_vec(),
        "SHA-512/224" => Sha512_224::digest(value).to_vec(),
        "SHA-512/256" => Sha512_256::digest(value).to_vec(),
        "SHA" | "SHA1" | "SHA-1" => Sha1::digest(value).to_vec(),
        "MD5" => Md5::digest(value).to_vec(),
        _ => return Err(CqlError::invalid(format!("Hash algorithm not found: {algorithm}"))),
    })
}

/// `mask_inner` and `mask_outer`; positions count UTF-16 units, as Java's strings do.
fn partial(
    mask: Mask,
    function: &Function,
    arguments: &[Option<&[u8]>],
) -> Result<Option<Vec<u8>>, CqlError> {
    let argument = |index: usize| arguments.get(index).copied().flatten();
    let padding = match argument(3) {
        None => PADDING,
        Some(given) => {
            let text = String::from_utf8_lossy(given);
            let units: Vec<u16> = text.encode_utf16().collect();
            let [unit] = units.as_slice() else {
                return Err(CqlError::invalid(format!(
                    "The padding argument for function system.{} should be single-character, but '{text}' has {} characters.",
                    function.name(),
                    units.len()
                )));
            };
            *unit
        }
    };
    let Some(value) = argument(0) else { return Ok(None) };
    let number = |index| argument(index).and_then(|value| CqlType::Int.as_i64(value)).unwrap_or(0);
    let text = String::from_utf8_lossy(value);
    let units: Vec<u16> = text.encode_utf16().collect();
    let size = i64::try_from(units.len()).unwrap_or(i64::MAX);
    // in 32 bits, as there
    let (begin, end) = (number(1), i64::from((size - 1 - number(2)) as i32));
    let masked = (0_i64..).zip(&units).map(|(at, unit)| {
        let is_inside = at >= begin && at <= end;
        if is_inside == (mask == Mask::Inner) { padding } else { *unit }
    });
    let masked: Vec<u16> = masked.collect();
    let bytes = char::decode_utf16(masked).map(|c| c.unwrap_or('?')).collect::<String>();
    if *function.returns() == CqlType::Ascii && !bytes.is_ascii() {
        let plain = bytes.chars().map(|c| if c.is_ascii() { c } else { '?' });
        return Ok(Some(plain.collect::<String>().into_bytes()));
    }
    Ok(Some(bytes.into_bytes()))
}

/// The value that stands for all values of a type.
fn masked(ty: &CqlType, depth: usize) -> Result<Vec<u8>, CqlError> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| CqlError::invalid("Types are nested too deep"))?;
    Ok(match ty {
        CqlType::Ascii | CqlType::Text => b"****".to_vec(),
        CqlType::Boolean | CqlType::TinyInt => vec![0],
        CqlType::SmallInt => vec![0; 2],
        CqlType::Int | CqlType::Float | CqlType::Inet => vec![0; 4],
        CqlType::BigInt
        | CqlType::Counter
        | CqlType::Double
        | CqlType::Time
        | CqlType::Timestamp => vec![0; 8],
        CqlType::Blob | CqlType::Empty => Vec::new(),
        CqlType::Date => (1_u32 << 31).to_be_bytes().to_vec(),
        CqlType::Decimal => Decimal { unscaled: 0.into(), scale: 0 }.to_bytes(),
        CqlType::VarInt => vec![0],
        CqlType::Duration => Duration { months: 0, days: 0, nanos: 0 }.to_bytes(),
        CqlType::Uuid => vec![0; 16],
        CqlType::TimeUuid => Uuid::min_of_millis(0).to_bytes().to_vec(),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            pack_list::<[&[u8]; 0]>([])
        }
        CqlType::Tuple(types) => {
            let parts = types.iter().map(|ty| masked(ty, depth).map(Some));
            pack_components(parts.collect::<Result<Vec<_>, _>>()?)
        }
        CqlType::Udt { definition, .. } => {
            let parts = definition.fields.iter().map(|(_, ty)| masked(ty, depth).map(Some));
            pack_components(parts.collect::<Result<Vec<_>, _>>()?)
        }
        CqlType::Vector { element, dimension } => {
            let item = masked(element, depth)?;
            let count = usize::try_from(*dimension).unwrap_or(0);
            pack_vector(element, std::iter::repeat_n(item, count))
        }
        CqlType::Class(class) if **class == types::ClassType::LexicalUuid => vec![0; 16],
        CqlType::Class(_) | CqlType::Custom(_) => {
            return Err(CqlError::invalid(format!(
                "There isn't a defined masked value for type {ty}"
            )));
        }
    })
}
