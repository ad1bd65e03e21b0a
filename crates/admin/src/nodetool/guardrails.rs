//! Guardrails as `getguardrailsconfig` and `setguardrailsconfig` show and set them
//! (`tools.nodetool.GuardrailsConfigCommand`).

use super::text::columns::Columns;
use crate::model::{Refusal, Setting};
use crate::operator::Answer;

/// What a guardrail is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `true` or `false`.
    Flag,
    /// A threshold of numbers, -1 for none.
    Numbers,
    /// A threshold of sizes or durations, null for none.
    Texts,
    /// A list.
    Words,
    /// A size.
    Text,
}

/// All of them: those of one category together, by name. Of thresholds it is what the names of both
/// sides share.
const ALL: &[(&str, Kind)] = &[
    ("allow_filtering_enabled", Kind::Flag),
    ("alter_table_enabled", Kind::Flag),
    ("compact_tables_enabled", Kind::Flag),
    ("drop_keyspace_enabled", Kind::Flag),
    ("drop_truncate_table_enabled", Kind::Flag),
    ("group_by_enabled", Kind::Flag),
    ("intersect_filtering_query_enabled", Kind::Flag),
    ("intersect_filtering_query_warned", Kind::Flag),
    ("non_partition_restricted_index_query_enabled", Kind::Flag),
    ("read_before_write_list_operations_enabled", Kind::Flag),
    ("secondary_indexes_enabled", Kind::Flag),
    ("simplestrategy_enabled", Kind::Flag),
    ("uncompressed_tables_enabled", Kind::Flag),
    ("user_timestamps_enabled", Kind::Flag),
    ("vector_type_enabled", Kind::Flag),
    ("zero_ttl_on_twcs_enabled", Kind::Flag),
    ("zero_ttl_on_twcs_warned", Kind::Flag),
    ("collection_size", Kind::Texts),
    ("column_value_size", Kind::Texts),
    ("columns_per_table", Kind::Numbers),
    ("data_disk_usage_percentage", Kind::Numbers),
    ("fields_per_udt", Kind::Numbers),
    ("in_select_cartesian_product", Kind::Numbers),
    ("items_per_collection", Kind::Numbers),
    ("keyspaces", Kind::Numbers),
    ("materialized_views_per_table", Kind::Numbers),
    ("maximum_replication_factor", Kind::Numbers),
    ("maximum_timestamp", Kind::Texts),
    ("minimum_replication_factor", Kind::Numbers),
    ("minimum_timestamp", Kind::Texts),
    ("page_size", Kind::Numbers),
    ("partition_keys_in_select", Kind::Numbers),
    ("partition_size", Kind::Texts),
    ("partition_tombstones", Kind::Numbers),
    ("sai_frozen_term_size", Kind::Texts),
    ("sai_sstable_indexes_per_query", Kind::Numbers),
    ("sai_string_term_size", Kind::Texts),
    ("sai_vector_term_size", Kind::Texts),
    ("secondary_indexes_per_table", Kind::Numbers),
    ("tables", Kind::Numbers),
    ("vector_dimensions", Kind::Numbers),
    ("read_consistency_levels_disallowed", Kind::Words),
    ("read_consistency_levels_warned", Kind::Words),
    ("table_properties_disallowed", Kind::Words),
    ("table_properties_ignored", Kind::Words),
    ("table_properties_warned", Kind::Words),
    ("write_consistency_levels_disallowed", Kind::Words),
    ("write_consistency_levels_warned", Kind::Words),
    ("data_disk_usage_max_disk_size", Kind::Text),
];

/// Which guardrails are to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardrailFilter {
    /// Only those of this category.
    pub category: Option<Category>,
    /// Both sides of a threshold apart.
    pub expand: bool,
    /// Only the one of this name.
    pub name: Option<String>,
}

/// A category of guardrails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Lists.
    Values,
    /// Thresholds.
    Thresholds,
    /// Switches.
    Flags,
    /// All others.
    Others,
}

impl Category {
    /// The one of a name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name.to_lowercase().as_str() {
            "values" => Self::Values,
            "thresholds" => Self::Thresholds,
            "flags" => Self::Flags,
            "others" => Self::Others,
            _ => return None,
        })
    }

    fn has(self, kind: Kind) -> bool {
        self == match kind {
            Kind::Flag => Self::Flags,
            Kind::Numbers | Kind::Texts => Self::Thresholds,
            Kind::Words => Self::Values,
            Kind::Text => Self::Others,
        }
    }
}

fn refused<T>(text: String) -> Answer<T> {
    Err(Refusal::BadUse(text))
}

fn side(name: &str, side: &str) -> String {
    format!("{name}_{side}_threshold")
}

/// A line that is printed: a name and the keys whose values stand there.
struct Line {
    name: String,
    keys: Vec<String>,
}

/// The lines that are asked for.
fn lines(filter: &GuardrailFilter) -> Vec<Line> {
    let is_meant = |name: &str| filter.name.as_deref().is_none_or(|wanted| wanted == name);
    let mut lines = Vec::new();
    let of_category = |kind| filter.category.is_none_or(|category| category.has(kind));
    for (name, kind) in ALL.iter().filter(|(_, kind)| of_category(*kind)) {
        if !matches!(kind, Kind::Numbers | Kind::Texts) {
            let line = || Line { name: (*name).to_owned(), keys: vec![(*name).to_owned()] };
            lines.extend(is_meant(name).then(line));
            continue;
        }
        let both = format!("{name}_threshold");
        let sides = ["fail", "warn"].map(|one| side(name, one));
        let meant = sides.into_iter().filter(|key| is_meant(&both) || is_meant(key));
        let keys: Vec<String> = meant.collect();
        match keys.is_empty() {
            true => {}
            false if filter.expand => {
                lines.extend(
                    keys.into_iter().map(|key| Line { name: key.clone(), keys: vec![key] }),
                );
            }
            false => lines.push(Line { name: both, keys }),
        }
    }
    lines
}

/// The guardrails that are asked for, of all settings.
pub(crate) fn select(settings: &[Setting], filter: &GuardrailFilter) -> Answer<Vec<Setting>> {
    let lines = lines(filter);
    if let (Some(name), true) = (&filter.name, lines.is_empty()) {
        return refused(format!("Guardrail {name} not found."));
    }
    let setting = |name: String| {
        let found = settings.iter().find(|setting| setting.name == name);
        Setting { value: found.and_then(|setting| setting.value.clone()), name }
    };
    Ok(lines.into_iter().flat_map(|line| line.keys).map(setting).collect())
}

/// The table that is printed; of one guardrail it is its value alone.
pub(crate) fn print(settings: &[Setting], filter: &GuardrailFilter) -> String {
    let value = |key: &String| {
        let found = settings.iter().find(|setting| setting.name == *key);
        found.and_then(|setting| setting.value.clone()).unwrap_or_else(|| "null".to_owned())
    };
    let row = |line: Line| match line.keys.as_slice() {
        [one] => (line.name, value(one)),
        all => (line.name, format!("[{}]", all.iter().map(value).collect::<Vec<_>>().join(", "))),
    };
    let rows: Vec<(String, String)> = lines(filter).into_iter().map(row).collect();
    let mut columns = Columns::default();
    match rows.as_slice() {
        [(_, value)] if filter.category.is_none() => columns.row([value]),
        rows => rows.iter().for_each(|(name, value)| columns.row([name, value])),
    }
    columns.text(&columns.widths(), " ")
}

/// The keys that are to be set, as `key=value`.
pub(crate) fn settings(arguments: &[String]) -> Answer<Vec<String>> {
    let Some((name, given)) = arguments.split_first() else {
        return refused("No arguments.".to_owned());
    };
    let kind_of = |(one, kind): &(&str, Kind)| match kind {
        Kind::Numbers | Kind::Texts => *name == format!("{one}_threshold"),
        _ => name == one,
    };
    let Some((base, kind)) = ALL.iter().find(|one| kind_of(one)) else {
        return refused(format!("Guardrail {name} not found."));
    };
    let mut values = given.to_vec();
    if *kind == Kind::Words && values.len() > 1 {
        values = vec![values.join(",")];
    }
    let expected = if matches!(kind, Kind::Numbers | Kind::Texts) { 2 } else { 1 };
    if values.len() != expected {
        return refused(format!(
            "{name} is expecting {expected} argument values. Getting {} instead.",
            values.len()
        ));
    }
    let read = |value: &String| read(*kind, value).map_err(|why| error(name, &values, &why));
    let values: Vec<String> = values.iter().map(read).collect::<Answer<_>>()?;
    Ok(match values.as_slice() {
        [fail, warn] => {
            vec![format!("{}={warn}", side(base, "warn")), format!("{}={fail}", side(base, "fail"))]
        }
        values => values.iter().map(|value| format!("{base}={value}")).collect(),
    })
}

/// Why it was not set.
fn error(name: &str, values: &[String], why: &str) -> Refusal {
    Refusal::BadUse(format!(
        "Error occured when setting the config for setter {name} with arguments [{}]: {why}",
        values.join(", ")
    ))
}

/// What a refusal of the node says.
pub(crate) fn not_set(arguments: &[String], refusal: Refusal) -> Refusal {
    match (refusal, arguments.split_first()) {
        (Refusal::BadUse(why), Some((name, values))) => error(name, values, &why),
        (other, _) => other,
    }
}

/// A value as the configuration takes it.
fn read(kind: Kind, value: &str) -> Result<String, String> {
    match (kind, value) {
        (Kind::Flag, "null") => Ok("false".to_owned()),
        (Kind::Flag, "true" | "false") => Ok(value.to_owned()),
        (Kind::Flag, _) => Err("Use 'true' or 'false' values for booleans".to_owned()),
        (Kind::Numbers, "null") => Ok("-1".to_owned()),
        (Kind::Numbers, _) => match value.parse::<i64>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err(format!("For input string: \"{value}\"")),
        },
        (Kind::Words, "null" | "[]") => Ok("[]".to_owned()),
        (Kind::Words, _) => {
            let quoted: Vec<String> =
                value.split(',').map(|word| format!("'{}'", word.replace('\'', "''"))).collect();
            Ok(format!("[{}]", quoted.join(", ")))
        }
        (Kind::Texts | Kind::Text, _) => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(line: &str) -> Result<Vec<String>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        settings(&words).map_err(|error| error.to_string())
    }

    /// As nodetool 5.0.9 answered.
    #[test]
    fn refuses_as_cassandra_does() {
        let refusal = |line| set(line).unwrap_err();
        assert_eq!(refusal(""), "No arguments.");
        assert_eq!(refusal("nosuch 1"), "Guardrail nosuch not found.");
        assert_eq!(
            refusal("group_by_enabled"),
            "group_by_enabled is expecting 1 argument values. Getting 0 instead."
        );
        assert_eq!(
            refusal("keyspaces_threshold 5"),
            "keyspaces_threshold is expecting 2 argument values. Getting 1 instead."
        );
        assert_eq!(
            refusal("group_by_enabled maybe"),
            "Error occured when setting the config for setter group_by_enabled with arguments [maybe]: Use 'true' or 'false' values for booleans"
        );
        assert_eq!(
            refusal("keyspaces_threshold x 1"),
            "Error occured when setting the config for setter keyspaces_threshold with arguments [x, 1]: For input string: \"x\""
        );
    }

    #[test]
    fn names_the_keys_to_set() {
        let keys = |all: &[&str]| Ok(all.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        assert_eq!(set("group_by_enabled false"), keys(&["group_by_enabled=false"]));
        assert_eq!(
            set("keyspaces_threshold 20 null"),
            keys(&["keyspaces_warn_threshold=-1", "keyspaces_fail_threshold=20"])
        );
        assert_eq!(
            set("collection_size_threshold 2KiB 1KiB"),
            keys(&["collection_size_warn_threshold=1KiB", "collection_size_fail_threshold=2KiB"])
        );
        for line in ["table_properties_warned comment,id", "table_properties_warned comment id"] {
            assert_eq!(set(line), keys(&["table_properties_warned=['comment', 'id']"]));
        }
        assert_eq!(set("table_properties_warned null"), keys(&["table_properties_warned=[]"]));
    }

    #[test]
    fn shows_as_cassandra_does() {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        };
        let settings = [
            setting("group_by_enabled", "true"),
            setting("keyspaces_fail_threshold", "20"),
            setting("keyspaces_warn_threshold", "10"),
            setting("table_properties_warned", "[comment, gc_grace_seconds]"),
        ];
        let show = |name: &str, expand| {
            let filter = GuardrailFilter { name: Some(name.to_owned()), expand, category: None };
            select(&settings, &filter).map(|found| print(&found, &filter))
        };
        assert_eq!(show("group_by_enabled", false).unwrap(), "true\n");
        assert_eq!(show("keyspaces_threshold", false).unwrap(), "[20, 10]\n");
        assert_eq!(show("keyspaces_warn_threshold", false).unwrap(), "10\n");
        assert_eq!(
            show("keyspaces_threshold", true).unwrap(),
            "keyspaces_fail_threshold 20\nkeyspaces_warn_threshold 10\n"
        );
        assert_eq!(
            show("table_properties_warned", false).unwrap(),
            "[comment, gc_grace_seconds]\n"
        );
        assert_eq!(show("collection_size_threshold", false).unwrap(), "[null, null]\n");
        let error = show("nosuch", false).unwrap_err();
        assert_eq!(error.to_string(), "Guardrail nosuch not found.");
        let all = print(&settings, &GuardrailFilter::default());
        let names: Vec<&str> =
            all.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(
            (names[0], names[48]),
            ("allow_filtering_enabled", "data_disk_usage_max_disk_size")
        );
        let lists =
            GuardrailFilter { category: Some(Category::Values), ..GuardrailFilter::default() };
        assert_eq!(print(&settings, &lists).lines().count(), 7);
    }
}
