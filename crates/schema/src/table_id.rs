//! The id of a table: 16 bytes, the same on every node, in messages and in directory names.

use std::fmt;

use md5::{Digest, Md5};

/// A table's id, a UUID in network order. Tables of users carry a version 1 UUID drawn by the node
/// that created them; tables of the system a name-based one (`schema.TableId`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub [u8; 16]);

impl TableId {
    /// The id of a system table: the version 3 UUID of the keyspace's and table's names put
    /// together.
    pub fn of_system_table(keyspace: &str, table: &str) -> Self {
        Self::of_name(keyspace, table)
    }

    /// The same of any table, where `use_deterministic_table_id` asks for it.
    pub fn of_name(keyspace: &str, table: &str) -> Self {
        Self(name_uuid(&[keyspace.as_bytes(), table.as_bytes()]))
    }

    /// Reads the canonical form, `8-4-4-4-12` hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let groups: Vec<&str> = text.split('-').collect();
        let lengths = groups.iter().map(|g| g.len());
        if !lengths.eq([8, 4, 4, 4, 12]) || !text.is_ascii() {
            return None;
        }
        let mut id = [0; 16];
        let digits: Vec<u8> = text.bytes().filter(|&b| b != b'-').collect();
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            for &digit in pair {
                *byte = *byte << 4 | (digit as char).to_digit(16)? as u8;
            }
        }
        Some(Self(id))
    }

    /// The 32 hexadecimal digits without dashes, as in the name of the table's directory.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// The version 3 (MD5, name-based, no name space) UUID of some bytes given in parts.
pub(crate) fn name_uuid(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Md5::new();
    for part in parts {
        digest.update(part);
    }
    let mut uuid: [u8; 16] = digest.finalize().into();
    uuid[6] = uuid[6] & 0x0f | 0x30;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_system_tables_are_cassandras() {
        let id = TableId::of_system_table("system", "local");
        assert_eq!(id.to_string(), "7ad54392-bcdd-35a6-8417-4e047860b377");
        assert_eq!(TableId::parse("7ad54392-bcdd-35a6-8417-4e047860b377"), Some(id));
        assert_eq!(TableId::parse("7ad54392bcdd35a684174e047860b377"), None);
        assert_eq!(id.to_hex(), "7ad54392bcdd35a684174e047860b377");
    }
}
