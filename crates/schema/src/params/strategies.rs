//! Options that the compaction strategies understand (`validateOptions` of each class), and their
//! values' rules.

use std::collections::BTreeMap;

use crate::error::SchemaError;
use crate::jvm;
use crate::params::compaction_class::CompactionClass;

type Options = BTreeMap<String, String>;

/// Options of every strategy (`AbstractCompactionStrategy`).
const COMMON: [&str; 7] = [
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
];
const SIZE_TIERED: [&str; 5] =
    ["bucket_high", "bucket_low", "max_threshold", "min_sstable_size", "min_threshold"];
const LEVELED: [&str; 3] = ["fanout_size", "single_sstable_uplevel", "sstable_size_in_mb"];
const TIME_WINDOW: [&str; 5] = [
    "compaction_window_size",
    "compaction_window_unit",
    "expired_sstable_check_frequency_seconds",
    "timestamp_resolution",
    "unsafe_aggressive_sstable_expiration",
];
const UNIFIED: [&str; 10] = [
    "base_shard_count",
    "expired_sstable_check_frequency_seconds",
    "flush_size_override",
    "max_sstables_to_compact",
    "min_sstable_size",
    "overlap_inclusion_method",
    "scaling_parameters",
    "sstable_growth",
    "target_sstable_size",
    "unsafe_aggressive_sstable_expiration",
];

/// Levels of `LeveledManifest`.
const MAX_LEVELS: i32 = 9;
/// `Controller.MIN_TARGET_SSTABLE_SIZE`, in bytes.
const MIN_TARGET_SIZE: f64 = 1_048_576.0;
/// `Controller.DEFAULT_TARGET_SSTABLE_SIZE`, in bytes.
const DEFAULT_TARGET_SIZE: f64 = 1_073_741_824.0;

/// Does the strategy take `min_threshold` and `max_threshold`, and so show their defaults?
pub(crate) fn takes_thresholds(class: CompactionClass) -> bool {
    !matches!(class, CompactionClass::Unified)
}

/// Checks the values in Cassandra's order, then that no option is unknown.
pub(crate) fn validate(class: CompactionClass, options: &Options) -> Result<(), SchemaError> {
    common(options)?;
    let groups: &[&[&str]] = match class {
        CompactionClass::SizeTiered => {
            size_tiered(options)?;
            &[&COMMON, &SIZE_TIERED]
        }
        CompactionClass::Leveled => {
            leveled(options)?;
            size_tiered(options)?;
            &[&COMMON, &SIZE_TIERED, &LEVELED]
        }
        CompactionClass::TimeWindow => {
            time_window(options)?;
            size_tiered(options)?;
            &[&COMMON, &SIZE_TIERED, &TIME_WINDOW]
        }
        CompactionClass::Unified => {
            unified(options)?;
            &[&COMMON, &UNIFIED]
        }
        CompactionClass::Custom => return Ok(()),
    };
    let known = |name: &str| groups.iter().any(|group| group.contains(&name));
    let unknown: Vec<&String> = options.keys().filter(|name| !known(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let unknown = jvm::list(&jvm::string_order(unknown, jvm::copy_capacity(options.len())));
    SchemaError::config(format!(
        "Properties specified {unknown} are not understood by {}",
        class_name(class)
    ))
}

fn class_name(class: CompactionClass) -> &'static str {
    match class {
        CompactionClass::SizeTiered => "SizeTieredCompactionStrategy",
        CompactionClass::Leveled => "LeveledCompactionStrategy",
        CompactionClass::TimeWindow => "TimeWindowCompactionStrategy",
        CompactionClass::Unified => "UnifiedCompactionStrategy",
        CompactionClass::Custom => "the strategy",
    }
}

/// The option's value if there is one, else `Ok(None)`; "is not a parsable ..." if it is no number.
fn number<T: std::str::FromStr>(
    options: &Options,
    name: &str,
    kind: &str,
) -> Result<Option<T>, SchemaError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => SchemaError::config(format!("{text} is not a parsable {kind} for {name}")),
    }
}

const INT: &str = "int (base10)";

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

fn common(options: &Options) -> Result<(), SchemaError> {
    if let Some(text) = options.get("tombstone_threshold") {
        match jvm::parse_double(text) {
            Some(value) if value < 0.0 => {
                return SchemaError::config(format!(
                    "tombstone_threshold must be greater than 0, but was {value:.6}"
                ));
            }
            Some(_) => {}
            None => {
                return SchemaError::config(format!(
                    "{text} is not a parsable int (base10) for tombstone_threshold"
                ));
            }
        }
    }
    let name = "tombstone_compaction_interval";
    if let Some(value @ ..0) = number::<i64>(options, name, INT)? {
        return SchemaError::config(format!("{name} must be greater than 0, but was {value}"));
    }
    let refused = |name: &str| options.get(name).filter(|text| !is_boolean(text));
    if let Some(text) = refused("unchecked_tombstone_compaction") {
        return SchemaError::config(format!(
            "'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{text}'"
        ));
    }
    if let Some(text) = refused("log_all") {
        return SchemaError::config(format!(
            "'log_all' should either be 'true' or 'false', not {text}"
        ));
    }
    if let Some(text) = refused("enabled") {
        return SchemaError::config(format!(
            "enabled should either be 'true' or 'false', not {text}"
        ));
    }
    Ok(())
}

fn size_tiered(options: &Options) -> Result<(), SchemaError> {
    let name = "min_sstable_size";
    if let Some(value @ ..0) = number::<i64>(options, name, INT)? {
        return SchemaError::config(format!("{name} must be non negative: {value}"));
    }
    let double = |name: &str, default: f64| match options.get(name) {
        None => Ok(default),
        Some(text) => jvm::parse_double(text).ok_or_else(|| {
            SchemaError::Config(format!("{text} is not a parsable float for {name}"))
        }),
    };
    let (low, high) = (double("bucket_low", 0.5)?, double("bucket_high", 1.5)?);
    if high <= low {
        return SchemaError::config(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            jvm::double(high),
            jvm::double(low)
        ));
    }
    Ok(())
}

fn leveled(options: &Options) -> Result<(), SchemaError> {
    let positive = |name: &str, default: i32| match number::<i32>(options, name, INT)? {
        Some(value @ ..1) => {
            SchemaError::config(format!("{name} must be larger than 0, but was {value}"))
        }
        other => Ok(other.unwrap_or(default)),
    };
    let size = positive("sstable_size_in_mb", 1)?;
    let fanout = positive("fanout_size", 10)?;
    let bytes = i64::from(size) << 20;
    // at most (2^31)^8 * 2^51: beyond u128, hence the checks
    let level = u128::from(fanout.unsigned_abs()).checked_pow(MAX_LEVELS.unsigned_abs() - 1);
    let most = level.and_then(|level| level.checked_mul(u128::from(bytes.unsigned_abs())));
    if most.is_none_or(|most| most > i64::MAX.unsigned_abs().into()) {
        let most = most.map_or_else(|| "infinity".to_owned(), |most| most.to_string());
        return SchemaError::config(format!(
            "At most {} bytes may be in a compaction level; your maxSSTableSize must be absurdly \
             high to compute {most}",
            i64::MAX
        ));
    }
    Ok(())
}

fn time_window(options: &Options) -> Result<(), SchemaError> {
    let one_of = |name: &str, valid: &[&str]| match options.get(name) {
        Some(text) if !valid.contains(&text.as_str()) => {
            SchemaError::config(format!("{text} is not valid for {name}"))
        }
        _ => Ok(()),
    };
    let resolutions = ["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"];
    one_of("timestamp_resolution", &resolutions)?;
    one_of("compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    let name = "compaction_window_size";
    if let Some(value @ ..1) = number::<i32>(options, name, INT)? {
        return SchemaError::config(format!("{value} must be greater than 1 for {name}"));
    }
    let name = "expired_sstable_check_frequency_seconds";
    if let Some(value @ ..0) = number::<i64>(options, name, INT)? {
        return SchemaError::config(format!("{name} must not be negative, but was {value}"));
    }
    let name = "unsafe_aggressive_sstable_expiration";
    match options.get(name) {
        Some(text) if !is_boolean(text) => {
            SchemaError::config(format!("{name} is not 'true' or 'false' ({text})"))
        }
        Some(text) if text.eq_ignore_ascii_case("true") => SchemaError::config(format!(
            "{name} is requested but not allowed, restart cassandra with \
             -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it"
        )),
        _ => Ok(()),
    }
}

fn unified(options: &Options) -> Result<(), SchemaError> {
    if let Some(text) = options.get("scaling_parameters") {
        text.split(',').map(str::trim).try_for_each(scaling_parameter)?;
    }
    let name = "base_shard_count";
    if let Some(value @ ..=0) = number::<i32>(options, name, INT)? {
        return SchemaError::config(format!(
            "Invalid configuration, {name} should be positive: {value}"
        ));
    }
    let target = unified_size(options, "target_sstable_size")?.unwrap_or(DEFAULT_TARGET_SIZE);
    unified_size(options, "flush_size_override")?;
    number::<i32>(options, "max_sstables_to_compact", INT)?;
    let name = "expired_sstable_check_frequency_seconds";
    if let Some(value @ ..=0) = number::<i64>(options, name, "long (base10)")? {
        return SchemaError::config(format!(
            "Invalid configuration, {name} should be positive: {value}"
        ));
    }
    let name = "unsafe_aggressive_sstable_expiration";
    if let Some(text) = options.get(name).filter(|text| !is_boolean(text)) {
        return SchemaError::config(format!(
            "{name} should either be 'true' or 'false', not {text}"
        ));
    }
    if let Some(text) = options.get("overlap_inclusion_method")
        && !matches!(text.to_uppercase().as_str(), "NONE" | "SINGLE" | "TRANSITIVE")
    {
        return SchemaError::config(format!(
            "Invalid overlap inclusion method {text}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        ));
    }
    unified_min_size(options, target)?;
    unified_growth(options)
}

fn unified_size(options: &Options, name: &str) -> Result<Option<f64>, SchemaError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let size = bytes(text).map_err(|why| {
        SchemaError::Config(format!("{name} {text} is not a valid size in bytes: {why}"))
    })?;
    if size >= i64::MAX as f64 {
        return SchemaError::config(format!("{name} {text} is out of range of Long."));
    }
    if size < MIN_TARGET_SIZE {
        return SchemaError::config(format!(
            "{name} {text} is not acceptable, size must be at least {}",
            pretty(MIN_TARGET_SIZE)
        ));
    }
    Ok(Some(size.ceil()))
}

fn unified_min_size(options: &Options, target: f64) -> Result<(), SchemaError> {
    let name = "min_sstable_size";
    let Some(text) = options.get(name) else { return Ok(()) };
    let Ok(size) = bytes(text) else {
        let text = format!("{text} is not a valid size in bytes for {name}");
        return SchemaError::config(text);
    };
    let size = size.trunc();
    if size < 0.0 {
        return SchemaError::config(format!(
            "Invalid configuration, {name} should be greater than or equal to 0 (zero)"
        ));
    }
    if size >= (target * std::f64::consts::FRAC_1_SQRT_2).ceil() {
        return SchemaError::config(format!(
            "Invalid configuration, {name} ({}) should be less than 70% of the targetSSTableSize ({})",
            pretty(size),
            pretty(target)
        ));
    }
    Ok(())
}

fn unified_growth(options: &Options) -> Result<(), SchemaError> {
    let Some(text) = options.get("sstable_growth") else { return Ok(()) };
    let trimmed = text.trim();
    let growth = match trimmed.strip_suffix('%') {
        Some(percent) => jvm::parse_double(percent).map(|value| value / 100.0),
        None => jvm::parse_double(trimmed),
    };
    match growth {
        Some(growth) if (0.0..=1.0).contains(&growth) => Ok(()),
        Some(_) => SchemaError::config(format!("sstable_growth {text} must be between 0 and 1")),
        None => SchemaError::config(format!(
            "sstable_growth is not a valid number between 0 and 1: For input string: \"{text}\""
        )),
    }
}

fn scaling_parameter(text: &str) -> Result<(), SchemaError> {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let (rest, least) = match text.strip_prefix(['L', 'T']) {
        Some(rest) => (rest, 2),
        None => (text.strip_prefix(['+', '-']).unwrap_or(text), 0),
    };
    if text != "N" && !digits(rest) {
        return SchemaError::config(format!(
            "Scaling parameter {text} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
        ));
    }
    match rest.parse::<i32>() {
        Ok(value) if value < least => {
            SchemaError::config(format!("Fan factor cannot be lower than 2 in {text}"))
        }
        Err(_) if text != "N" => SchemaError::config(format!("For input string: \"{rest}\"")),
        _ => Ok(()),
    }
}

/// A size such as `512MiB`, in bytes.
pub fn bytes_of(text: &str) -> Option<f64> {
    bytes(text).ok()
}

/// A size such as `512MiB`, `1.5 GB`, `2*2^20B` (`FBUtilities.parseHumanReadable`), in bytes.
pub(crate) fn bytes(text: &str) -> Result<f64, String> {
    let body = text.strip_suffix('B').ok_or_else(|| format!("{text} does not end in unit B"))?;
    let end = body
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(body.len());
    let (number, mut rest) = body.split_at(end);
    let mut value: f64 = number.parse().map_err(|_| "null".to_owned())?;
    if let Some(exponent) = rest.strip_prefix("*2^") {
        let end = exponent.find(|c: char| !c.is_ascii_digit()).unwrap_or(exponent.len());
        let (power, after) = exponent.split_at(end);
        value *= 2f64.powi(power.parse().map_err(|_| "null".to_owned())?);
        rest = after;
    }
    let rest = rest.trim_start();
    let prefix = rest.chars().next();
    let Some(step) = prefix.and_then(|c| "qryzafpnum.kMGTPEZYRQ".find(c)) else {
        return if rest.is_empty() {
            Ok(value)
        } else {
            Err(format!("Unexpected characters in {text}"))
        };
    };
    let step = step as i32 - 10;
    match rest.get(1..) {
        Some("i") => Ok(value * 2f64.powi(10 * step)),
        Some("") => Ok(value * 1000f64.powi(step)),
        _ => Err(format!("Unexpected characters in {text}")),
    }
}

/// `FBUtilities.prettyPrintMemory`: three decimals and a binary unit.
fn pretty(size: f64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in units {
        if size >= unit as f64 {
            return format!("{:.3}{name}", size / unit as f64);
        }
    }
    format!("{size:.0}B")
}
