//! Compaction of a table (`schema.CompactionParams`).

use std::collections::BTreeMap;

/// Package of the strategies that Cassandra comes with.
pub(crate) const COMPACTION: &str = "org.apache.cassandra.db.compaction.";

/// A compaction strategy, as understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionClass {
    /// `SizeTieredCompactionStrategy`.
    SizeTiered,
    /// `LeveledCompactionStrategy`.
    Leveled,
    /// `TimeWindowCompactionStrategy`.
    TimeWindow,
    /// `UnifiedCompactionStrategy`.
    Unified,
    /// None of these: kept and described.
    Custom,
}

/// What of a shadowed tombstone's victims is dropped early (`provide_overlapping_tombstones`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TombstoneOption {
    /// Nothing.
    #[default]
    None,
    /// Rows.
    Row,
    /// Rows and cells.
    Cell,
}

/// Compaction's strategy and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionParams {
    /// The class's full Java name.
    pub class: String,
    /// The options, verbatim, without the class.
    pub options: BTreeMap<String, String>,
    /// What the class means.
    pub kind: CompactionClass,
}

impl CompactionParams {
    /// Understands a class's full Java name.
    pub fn new(class: impl Into<String>, options: BTreeMap<String, String>) -> Self {
        let class = class.into();
        let kind = match class.strip_prefix(COMPACTION) {
            Some("SizeTieredCompactionStrategy") => CompactionClass::SizeTiered,
            Some("LeveledCompactionStrategy") => CompactionClass::Leveled,
            Some("TimeWindowCompactionStrategy") => CompactionClass::TimeWindow,
            Some("UnifiedCompactionStrategy") => CompactionClass::Unified,
            _ => CompactionClass::Custom,
        };
        Self { class, options, kind }
    }

    /// Does compaction run by itself (`enabled`)?
    pub fn enabled(&self) -> bool {
        self.options.get("enabled").is_none_or(|v| v.eq_ignore_ascii_case("true"))
    }

    /// Fewest SSTables merged at once.
    pub fn min_threshold(&self) -> u32 {
        self.number("min_threshold", 4)
    }

    /// Most SSTables merged at once.
    pub fn max_threshold(&self) -> u32 {
        self.number("max_threshold", 32)
    }

    /// What overlapping tombstones drop early.
    pub fn tombstone_option(&self) -> TombstoneOption {
        match self.options.get("provide_overlapping_tombstones").map(|v| v.to_ascii_uppercase()) {
            Some(v) if v == "ROW" => TombstoneOption::Row,
            Some(v) if v == "CELL" => TombstoneOption::Cell,
            _ => TombstoneOption::None,
        }
    }

    fn number(&self, option: &str, default: u32) -> u32 {
        self.options.get(option).and_then(|v| v.parse().ok()).unwrap_or(default)
    }
}

impl Default for CompactionParams {
    fn default() -> Self {
        let options =
            [("max_threshold", "32"), ("min_threshold", "4")].map(|(k, v)| (k.into(), v.into()));
        Self::new(format!("{COMPACTION}SizeTieredCompactionStrategy"), options.into())
    }
}
