//! Compaction of a table (`schema.CompactionParams`).

use std::collections::BTreeMap;

use crate::error::SchemaError;
use crate::jvm;
use crate::params::compaction_class::{COMPACTION, CompactionClass};
use crate::params::strategies;

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

    /// From the stored map: a class that we do not know stays what it is.
    pub(crate) fn from_stored(map: &BTreeMap<String, String>) -> Result<Self, SchemaError> {
        match map.get("class") {
            Some(class)
                if Self::new(class.as_str(), BTreeMap::new()).kind == CompactionClass::Custom =>
            {
                let mut options = map.clone();
                options.remove("class");
                Ok(Self::new(class.as_str(), options))
            }
            _ => Self::from_map(map),
        }
    }

    /// From the statement's map.
    pub(crate) fn from_map(map: &BTreeMap<String, String>) -> Result<Self, SchemaError> {
        let mut options = map.clone();
        let Some(class) = options.remove("class") else {
            return SchemaError::config("Missing sub-option 'class' for the 'compaction' option");
        };
        let class = if class.contains('.') { class } else { format!("{COMPACTION}{class}") };
        let mut params = Self::new(class, options);
        if params.kind == CompactionClass::Custom {
            return SchemaError::config(format!(
                "Unable to find compaction strategy class '{}'",
                params.class
            ));
        }
        if let Some(text) = params.options.get("provide_overlapping_tombstones") {
            let text = text.to_uppercase();
            if !matches!(text.as_str(), "NONE" | "ROW" | "CELL") {
                return SchemaError::config(format!(
                    "Invalid value {text} for 'provide_overlapping_tombstones' compaction \
                     sub-option - must be one of the following [NONE, ROW, CELL]."
                ));
            }
        }
        if strategies::takes_thresholds(params.kind) {
            for (name, default) in [("min_threshold", "4"), ("max_threshold", "32")] {
                params.options.entry(name.to_owned()).or_insert_with(|| default.to_owned());
            }
        }
        Ok(params)
    }

    /// As stored.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = self.options.clone();
        map.insert("class".to_owned(), self.class.clone());
        map
    }

    /// The rate of false positives where the statement does not say.
    pub(crate) fn default_bloom_filter_fp_chance(&self) -> f64 {
        if self.kind == CompactionClass::Leveled { 0.1 } else { 0.01 }
    }

    pub(crate) fn validate(&self) -> Result<(), SchemaError> {
        strategies::validate(self.kind, &self.options)?;
        for name in ["min_threshold", "max_threshold"] {
            if let Some(text) = self.options.get(name).filter(|text| !jvm::is_numeric(text)) {
                return SchemaError::config(format!(
                    "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
                ));
            }
        }
        let (min, max) = (self.min_threshold(), self.max_threshold());
        if min == 0 || max == 0 {
            return SchemaError::config(
                "Disabling compaction by setting compaction thresholds to 0 has been removed, set \
                 the compaction option 'enabled' to false instead.",
            );
        }
        if min <= 1 {
            return SchemaError::config(format!(
                "Min compaction threshold cannot be less than 2 (got {min})"
            ));
        }
        if min > max {
            return SchemaError::config(format!(
                "Min compaction threshold (got {min}) cannot be greater than max compaction \
                 threshold (got {max})"
            ));
        }
        Ok(())
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
