//! What an SSTable's files are called (`io.sstable.Descriptor`):
//! `<version>-<id>-<format>-<component>` in `<keyspace>/<table>-<32 hex digits>/`.

use std::fmt;

use crate::error::{Error, Result};

/// Which layout the files have: two letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u8; 2]);

/// What 4.0 to 5.0 write in the default compatibility mode, and so do we.
pub const NB: Version = Version(*b"nb");
/// What 4.0 wrote before: `nb` without the writer's host id.
pub const NA: Version = Version(*b"na");
/// What 5.0 writes otherwise.
pub const OA: Version = Version(*b"oa");
/// What 5.0 writes in BTI format.
pub const DA: Version = Version(*b"da");

impl Version {
    /// [`NB`].
    pub const NB: Self = NB;
    /// Those that we write.
    pub const WRITTEN: [Self; 3] = [NB, OA, DA];

    /// Two lower-case letters.
    pub fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [a @ b'a'..=b'z', b @ b'a'..=b'z'] => Some(Self([*a, *b])),
            _ => None,
        }
    }

    /// Whether we read it: `na`, `nb` and `oa` of the big format, `da` of BTI. Of others only parts
    /// are known here; a table of theirs is not to be guessed at.
    pub fn is_readable(self, format: Format) -> bool {
        match format {
            Format::Big => [NA, NB, OA].contains(&self),
            Format::Bti => self == DA,
        }
    }

    /// Whether we write it, and its metadata anew.
    pub fn is_written(self) -> bool {
        Self::WRITTEN.contains(&self)
    }

    /// The index that tables of this version have.
    pub fn index_format(self) -> Format {
        if self == DA { Format::Bti } else { Format::Big }
    }

    /// Whether the compression map has the length beyond which a chunk is stored as it is.
    pub fn has_max_compressed_length(self) -> bool {
        self >= Self(*b"na") || self.has_uint_deletion_time()
    }

    /// Whether the filter's words are stored as bytes rather than as big-endian longs.
    pub fn has_byte_filter(self) -> bool {
        self.has_max_compressed_length()
    }

    /// Whether deletion times are unsigned, up to the year 2106.
    pub fn has_uint_deletion_time(self) -> bool {
        self >= OA || self.0.first() == Some(&b'd')
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{}", char::from(*b)))
    }
}

/// The index that the table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// `big`: Index.db and Summary.db.
    Big,
    /// `bti`: Partitions.db and Rows.db.
    Bti,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Big => "big",
            Self::Bti => "bti",
        })
    }
}

/// What tells the tables of a directory apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    /// Counted from 1; `uuid_sstable_identifiers_enabled: false`.
    Sequence(u32),
    /// A time-UUID, as the 16 bytes of a `u128`. Ordered by its bytes here, not by its time.
    Uuid(u128),
}

/// Letters of an id made from a UUID: day, `_`, second, `_`, tick, the low half.
const UUID_LENGTH: usize = 28;
/// 100 ns ticks in a second.
const TICKS: u64 = 10_000_000;
/// Seconds in a day.
const DAY: u64 = 86_400;

impl Id {
    /// Either form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() == UUID_LENGTH {
            return Self::parse_uuid(text);
        }
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|n| is_number && i32::try_from(*n).is_ok());
        number.map(Self::Sequence)
    }

    /// Its bytes in saved caches (`SSTableId.asBytes`): four, or of a UUID the time and the low
    /// half.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Sequence(number) => number.to_be_bytes().to_vec(),
            Self::Uuid(uuid) => {
                [ticks_of(uuid).to_be_bytes(), (uuid as u64).to_be_bytes()].concat()
            }
        }
    }

    /// The reverse; none for bytes of no id.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Ok(number) = <[u8; 4]>::try_from(bytes) {
            return Some(Self::Sequence(u32::from_be_bytes(number)));
        }
        let both = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(Self::Uuid(time_uuid((both >> 64) as u64)? << 64 | both & u128::from(u64::MAX)))
    }

    fn parse_uuid(text: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let (day, second, rest) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || (day.len(), second.len(), rest.len()) != (4, 4, 18) {
            return None;
        }
        let (tick, low) = rest.split_at_checked(5)?;
        let seconds = base36(day)?.checked_mul(DAY)?.checked_add(base36(second)?)?;
        let ticks = seconds.checked_mul(TICKS)?.checked_add(base36(tick)?)?;
        Some(Self::Uuid(time_uuid(ticks)? << 64 | u128::from(base36(low)?)))
    }
}

/// Digits and letters of either case.
fn base36(text: &str) -> Option<u64> {
    let clean = text.bytes().all(|b| b.is_ascii_alphanumeric());
    if clean { u64::from_str_radix(text, 36).ok() } else { None }
}

/// The high half of a version 1 UUID of `ticks` since 1582; `None` beyond its 60 bits.
fn time_uuid(ticks: u64) -> Option<u128> {
    if ticks >> 60 != 0 {
        return None;
    }
    let (low, mid, high) = (ticks & 0xffff_ffff, ticks >> 32 & 0xffff, ticks >> 48);
    Some(u128::from(low << 32 | mid << 16 | 0x1000 | high))
}

/// The ticks of a UUID's high half.
fn ticks_of(uuid: u128) -> u64 {
    let half = (uuid >> 64) as u64;
    half >> 32 | (half >> 16 & 0xffff) << 32 | (half & 0xfff) << 48
}

fn put36(f: &mut fmt::Formatter<'_>, mut n: u64, width: usize) -> fmt::Result {
    let mut digits = [b'0'; 13];
    for digit in digits.iter_mut().rev() {
        let d = (n % 36) as u8;
        *digit = if d < 10 { b'0' + d } else { b'a' + d - 10 };
        n /= 36;
    }
    digits.iter().skip(digits.len() - width).try_for_each(|d| write!(f, "{}", char::from(*d)))
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(n) => write!(f, "{n}"),
            Self::Uuid(uuid) => {
                let ticks = ticks_of(*uuid);
                let seconds = ticks / TICKS;
                put36(f, seconds / DAY, 4)?;
                f.write_str("_")?;
                put36(f, seconds % DAY, 4)?;
                f.write_str("_")?;
                put36(f, ticks % TICKS, 5)?;
                put36(f, *uuid as u64, 13)
            }
        }
    }
}

/// One file of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The partitions.
    Data,
    /// Where each chunk of a compressed Data.db starts.
    CompressionInfo,
    /// Statistics, and the header that Data.db is read by.
    Statistics,
    /// The Bloom filter.
    Filter,
    /// The checksum of Data.db.
    Digest,
    /// The checksums of an uncompressed Data.db's chunks.
    Crc,
    /// The list of components.
    Toc,
    /// Position of each partition (`big`).
    Index,
    /// A sample of Index.db (`big`).
    Summary,
    /// The trie of partitions (`bti`).
    Partitions,
    /// The tries of rows (`bti`).
    Rows,
    /// Any other, as those of indexes: passed on, never read.
    Other(String),
}

const COMPONENTS: [(Component, &str); 11] = [
    (Component::Data, "Data.db"),
    (Component::CompressionInfo, "CompressionInfo.db"),
    (Component::Statistics, "Statistics.db"),
    (Component::Filter, "Filter.db"),
    (Component::Digest, "Digest.crc32"),
    (Component::Crc, "CRC.db"),
    (Component::Toc, "TOC.txt"),
    (Component::Index, "Index.db"),
    (Component::Summary, "Summary.db"),
    (Component::Partitions, "Partitions.db"),
    (Component::Rows, "Rows.db"),
];

impl Component {
    /// By the last part of the file's name.
    pub fn parse(text: &str) -> Self {
        let known = COMPONENTS.into_iter().find(|(_, name)| *name == text);
        known.map_or_else(|| Self::Other(text.to_string()), |(component, _)| component)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(name) = self {
            return f.write_str(name);
        }
        f.write_str(COMPONENTS.iter().find(|(c, _)| c == self).map_or("", |(_, name)| *name))
    }
}

/// An SSTable's name within its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Descriptor {
    /// Layout.
    pub version: Version,
    /// Which one.
    pub id: Id,
    /// Kind of index.
    pub format: Format,
}

impl Descriptor {
    /// Takes a file's name apart.
    pub fn parse(name: &str) -> Result<(Self, Component)> {
        let refuse = |what| Err(Error::Name { name: name.to_string(), what });
        let mut parts = name.split('-');
        let (Some(version), Some(id), Some(format), Some(component), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return refuse("it does not have four parts");
        };
        let Some(version) = Version::parse(version) else {
            return refuse("its version is malformed");
        };
        let Some(id) = Id::parse(id) else { return refuse("its id is malformed") };
        let format = match format {
            "big" => Format::Big,
            "bti" => Format::Bti,
            _ => return refuse("its format is unknown"),
        };
        Ok((Self { version, id, format }, Component::parse(component)))
    }

    /// The name of one of its files.
    pub fn file(&self, component: &Component) -> String {
        format!("{self}-{component}")
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.version, self.id, self.format)
    }
}

/// The directory of a table below its keyspace's, by its name and the 16 bytes of its id.
pub fn table_directory(table: &str, id: u128) -> String {
    format!("{table}-{id:032x}")
}

/// A table's name and id by the name of its directory.
pub fn parse_table_directory(name: &str) -> Option<(&str, u128)> {
    let (table, id) = name.rsplit_once('-')?;
    let is_hex = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    let is_name =
        !table.is_empty() && table.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_hex && is_name { Some((table, u128::from_str_radix(id, 16).ok()?)) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn takes_names_apart() {
        let (descriptor, component) = Descriptor::parse("nb-12-big-Data.db").unwrap();
        assert_eq!(
            descriptor,
            Descriptor { version: NB, id: Id::Sequence(12), format: Format::Big }
        );
        assert_eq!(component, Component::Data);
        assert_eq!(descriptor.file(&Component::Toc), "nb-12-big-TOC.txt");
        let (_, component) = Descriptor::parse("nb-1-big-SAI+aa+idx+Meta.db").unwrap();
        assert_eq!(component, Component::Other("SAI+aa+idx+Meta.db".into()));
    }

    #[test]
    fn names_by_uuid_are_cassandras() {
        // Both as org.apache.cassandra.io.sstable.UUIDBasedSSTableId 5.0.9 answers.
        for (text, uuid) in [
            ("3fw2_0tj4_46w3k2cpidnirvjy7k", 0x6636ac00_da84_11ec_9aba_f56e1443def0),
            ("3h5p_1njn_37iy82fnoa41glfrw6", 0x2c6d1a30_e5f2_11f1_a01d_f3c45d21bff6),
        ] {
            assert_eq!(Id::parse(text), Some(Id::Uuid(uuid)));
            assert_eq!(Id::Uuid(uuid).to_string(), text);
        }
    }

    #[test]
    fn refuses_other_names() {
        for name in [
            "",
            "nb-1-big",
            "nb-1-big-Data.db-x",
            "n-1-big-Data.db",
            "nb--big-Data.db",
            "nb-+1-big-Data.db",
            "nb-99999999999-big-Data.db",
            "nb-1-huge-Data.db",
            "nb-3fw2_0tj4_46w3k2cpidnirv!y7k-big-Data.db",
            "nb_txn_write_x.log",
        ] {
            assert!(Descriptor::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn knows_what_it_reads() {
        assert!(NA.is_readable(Format::Big) && NB.is_readable(Format::Big));
        assert!(!Version(*b"me").is_readable(Format::Big));
        assert!(OA.is_readable(Format::Big) && !OA.is_readable(Format::Bti));
        assert!(!Version(*b"pa").is_readable(Format::Big));
        assert!(!NB.is_readable(Format::Bti));
        assert!(DA.is_readable(Format::Bti) && !DA.is_readable(Format::Big));
        assert!(!NB.has_uint_deletion_time() && Version(*b"da").has_uint_deletion_time());
        assert!(!Version(*b"me").has_max_compressed_length());
    }

    #[test]
    fn directories_carry_the_tables_id() {
        let name = "lz4-2b4fc350e5f211f1a01df3c45d21bff6";
        let (table, id) = parse_table_directory(name).unwrap();
        assert_eq!(table, "lz4");
        assert_eq!(table_directory(table, id), name);
        for bad in [
            "lz4",
            "-2b4fc350e5f211f1a01df3c45d21bff6",
            "a-2b4f",
            "../x-2b4fc350e5f211f1a01df3c45d21bff6",
        ] {
            assert!(parse_table_directory(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn ids_round_trip(ticks in 0u64..1 << 57, low in any::<u64>(), n in 0u32..1 << 31) {
            let uuid = Id::Uuid(time_uuid(ticks).unwrap() << 64 | u128::from(low));
            // Four letters of base 36 count days to the year 6180.
            if ticks / TICKS / DAY < 36 * 36 * 36 * 36 {
                prop_assert_eq!(Id::parse(&uuid.to_string()), Some(uuid));
            }
            prop_assert_eq!(Id::parse(&Id::Sequence(n).to_string()), Some(Id::Sequence(n)));
        }

        #[test]
        fn no_name_panics(name in "\\PC{0,60}") {
            let _ = Descriptor::parse(&name);
            let _ = parse_table_directory(&name);
        }
    }
}
