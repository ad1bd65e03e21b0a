//! Types as metadata describes them (specification, section 4.2.5.2;
//! `org.apache.cassandra.transport.DataType`).

use types::CqlType;

use crate::{class_name::ClassName, put, version::Version};

/// Codes of types.
pub(crate) mod code {
    pub const CUSTOM: u16 = 0x00;
    pub const LIST: u16 = 0x20;
    pub const MAP: u16 = 0x21;
    pub const SET: u16 = 0x22;
    pub const UDT: u16 = 0x30;
    pub const TUPLE: u16 = 0x31;
}

/// Types with a code of their own, and the first version that has it; before it they are CUSTOM.
pub(crate) const SIMPLE: [(CqlType, u16, Version); 20] = [
    (CqlType::Ascii, 0x01, Version::V3),
    (CqlType::BigInt, 0x02, Version::V3),
    (CqlType::Blob, 0x03, Version::V3),
    (CqlType::Boolean, 0x04, Version::V3),
    (CqlType::Counter, 0x05, Version::V3),
    (CqlType::Decimal, 0x06, Version::V3),
    (CqlType::Double, 0x07, Version::V3),
    (CqlType::Float, 0x08, Version::V3),
    (CqlType::Int, 0x09, Version::V3),
    (CqlType::Timestamp, 0x0B, Version::V3),
    (CqlType::Uuid, 0x0C, Version::V3),
    (CqlType::Text, 0x0D, Version::V3),
    (CqlType::VarInt, 0x0E, Version::V3),
    (CqlType::TimeUuid, 0x0F, Version::V3),
    (CqlType::Inet, 0x10, Version::V3),
    (CqlType::Date, 0x11, Version::V4),
    (CqlType::Time, 0x12, Version::V4),
    (CqlType::SmallInt, 0x13, Version::V4),
    (CqlType::TinyInt, 0x14, Version::V4),
    (CqlType::Duration, 0x15, Version::V5),
];

/// Appends the description of a type.
pub(crate) fn write(out: &mut Vec<u8>, of: &CqlType, version: Version, names: ClassName) {
    match of {
        CqlType::List { element, .. } => {
            put::u16(out, code::LIST);
            write(out, element, version, names);
        }
        CqlType::Set { element, .. } => {
            put::u16(out, code::SET);
            write(out, element, version, names);
        }
        CqlType::Map { key, value, .. } => {
            put::u16(out, code::MAP);
            write(out, key, version, names);
            write(out, value, version, names);
        }
        CqlType::Tuple(elements) => {
            put::u16(out, code::TUPLE);
            let count = put::count(out, elements.len());
            for element in elements.iter().take(count) {
                write(out, element, version, names);
            }
        }
        CqlType::Udt { definition, .. } => {
            put::u16(out, code::UDT);
            put::string(out, &definition.keyspace);
            put::string(out, &definition.name);
            let count = put::count(out, definition.fields.len());
            for (name, field) in definition.fields.iter().take(count) {
                put::string(out, name);
                write(out, field, version, names);
            }
        }
        simple => {
            match SIMPLE.iter().find(|(known, _, since)| known == simple && version >= *since) {
                Some((_, code, _)) => put::u16(out, *code),
                None => {
                    put::u16(out, code::CUSTOM);
                    put::string(out, &names(simple));
                }
            }
        }
    }
}
