//! Descriptions of types into types.

use std::sync::Arc;

use types::{CqlType, UserType};

use crate::{
    ProtocolError,
    reader::Reader,
    type_option::{SIMPLE, code},
};

/// Types may nest this deep.
pub const MAX_TYPE_DEPTH: usize = 64;

/// Code of `text` in versions 1 and 2.
const OLD_TEXT: u16 = 0x0A;

/// Reads a type. Collections and user types come out frozen, as nothing on the wire tells; types
/// sent as CUSTOM keep their class string.
pub(super) fn parse(reader: &mut Reader<'_>, depth: usize) -> Result<CqlType, ProtocolError> {
    if depth > MAX_TYPE_DEPTH {
        return Err(ProtocolError::TypeDepth(MAX_TYPE_DEPTH));
    }
    let inner = |reader: &mut Reader<'_>| parse(reader, depth + 1);
    let arc = |reader: &mut Reader<'_>| inner(reader).map(Arc::new);
    match reader.u16()? {
        code::CUSTOM => Ok(CqlType::Custom(reader.string()?.into())),
        code::LIST => Ok(CqlType::List { element: arc(reader)?, frozen: true }),
        code::SET => Ok(CqlType::Set { element: arc(reader)?, frozen: true }),
        code::MAP => Ok(CqlType::Map { key: arc(reader)?, value: arc(reader)?, frozen: true }),
        code::TUPLE => {
            let count = reader.u16()?;
            let elements = (0..count).map(|_| inner(reader)).collect::<Result<Vec<_>, _>>()?;
            Ok(CqlType::Tuple(elements.into()))
        }
        code::UDT => {
            let keyspace = reader.string()?.to_owned();
            let name = reader.string()?.to_owned();
            let fields = (0..reader.u16()?)
                .map(|_| Ok((reader.string()?.to_owned(), inner(reader)?)))
                .collect::<Result<_, ProtocolError>>()?;
            let definition = Arc::new(UserType { keyspace, name, fields });
            Ok(CqlType::Udt { definition, frozen: true })
        }
        OLD_TEXT => Ok(CqlType::Text),
        other => match SIMPLE.iter().find(|(_, code, _)| *code == other) {
            Some((known, _, _)) => Ok(known.clone()),
            None => Err(ProtocolError::UnknownInResponse { what: "type", value: i64::from(other) }),
        },
    }
}
