//! Schema elements as CQL text, as server-side DESCRIBE gives it (`toCqlString` of each element).

use std::collections::BTreeSet;
use std::fmt::Write;

use types::{CqlType, UserType, java_order, maybe_quote};

use crate::column::{Column, ColumnKind, DroppedColumn};
use crate::jvm;
use crate::keyspace::{Aggregate, Function, Keyspace, Signature, View};
use crate::params::TableParams;
use crate::release::Release;
use crate::replication::{LOCATOR, Replication};
use crate::schema::Schema;
use crate::table::{Index, Table};

/// An element of the schema as DESCRIBE lists it: a row of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The keyspace, quoted where it must be.
    pub keyspace: String,
    /// `keyspace`, `type`, `function`, `aggregate`, `table`, `index`, `materialized_view`.
    pub kind: &'static str,
    /// The name, quoted where it must be; functions with the types of their arguments.
    pub name: String,
    /// The statement that makes it.
    pub create_statement: String,
}

/// A string literal.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A map literal, `quote_values` or not: by key (`CqlBuilder.append`).
fn map<'a>(entries: impl Iterator<Item = (&'a String, String)>) -> String {
    let mut entries: Vec<(&String, String)> = entries.collect();
    entries.sort_by(|(a, _), (b, _)| java_order::strings(a, b));
    let entries: Vec<String> =
        entries.into_iter().map(|(key, value)| format!("{}: {value}", quote(key))).collect();
    format!("{{{}}}", entries.join(", "))
}

fn text_map(entries: &std::collections::BTreeMap<String, String>) -> String {
    map(entries.iter().map(|(key, value)| (key, quote(value))))
}

fn if_not_exists(wanted: bool) -> &'static str {
    if wanted { "IF NOT EXISTS " } else { "" }
}

fn full_name(keyspace: &str, name: &str) -> String {
    format!("{}.{}", maybe_quote(keyspace), maybe_quote(name))
}

impl Schema {
    /// What DESCRIBE KEYSPACE answers; the keyspace alone if `only` is asked.
    pub fn describe_keyspace(
        &self,
        name: &str,
        only: bool,
        internals: bool,
        release: Release,
    ) -> Vec<Description> {
        let Some(keyspace) = self.keyspace(name) else { return Vec::new() };
        let mut found = vec![keyspace.description()];
        if only {
            return found;
        }
        let types = keyspace.types_in_order();
        found.extend(types.into_iter().map(|user_type| keyspace.type_description(user_type)));
        let functions = keyspace.functions.iter();
        found.extend(functions.map(|(key, function)| keyspace.function_description(key, function)));
        let aggregates = keyspace.aggregates.iter();
        found.extend(aggregates.map(|(key, a)| keyspace.aggregate_description(key, a)));
        for table in keyspace.tables.values() {
            found.extend(keyspace.describe_table(table, internals, release));
        }
        found
    }
}

impl Keyspace {
    fn element(&self, kind: &'static str, name: &str, create_statement: String) -> Description {
        let keyspace = maybe_quote(&self.name).into_owned();
        Description { keyspace, kind, name: name.to_owned(), create_statement }
    }

    /// The keyspace itself.
    pub fn description(&self) -> Description {
        self.element("keyspace", &maybe_quote(&self.name), self.to_cql(false))
    }

    /// One of its types.
    pub fn type_description(&self, user_type: &UserType) -> Description {
        let text = type_to_cql(user_type, false);
        self.element("type", &maybe_quote(&user_type.name), text)
    }

    /// One of its functions.
    pub fn function_description(&self, key: &Signature, function: &Function) -> Description {
        self.element("function", &key.to_cql(), function_to_cql(&self.name, key, function))
    }

    /// One of its aggregates.
    pub fn aggregate_description(&self, key: &Signature, aggregate: &Aggregate) -> Description {
        self.element("aggregate", &key.to_cql(), aggregate_to_cql(&self.name, key, aggregate))
    }

    /// A table, its indexes and its views: what DESCRIBE TABLE answers.
    pub fn describe_table(
        &self,
        table: &Table,
        internals: bool,
        release: Release,
    ) -> Vec<Description> {
        let text = table.to_cql(internals, false, release);
        let mut found = vec![self.element("table", &maybe_quote(&table.name), text)];
        for index in table.indexes.values() {
            let text = index.to_cql(table);
            found.push(self.element("index", &maybe_quote(&index.name), text));
        }
        for view in self.views.values().filter(|view| view.base_table_id == table.id) {
            let name = &view.table.name;
            let text = view.to_cql(internals, release);
            found.push(self.element("materialized_view", &maybe_quote(name), text));
        }
        found
    }

    /// Types by name, each after those that it needs (`Types.sortedStream`).
    pub fn types_in_order(&self) -> Vec<&UserType> {
        let mut sorted: Vec<&UserType> = Vec::new();
        let mut waiting: Vec<&UserType> = self.types.values().map(AsRef::as_ref).collect();
        while !waiting.is_empty() {
            let needs = |a: &UserType, b: &UserType| {
                a.name != b.name
                    && a.fields.iter().any(|(_, ty)| {
                        ty.any(&mut |ty| matches!(ty, types::CqlType::Udt { definition, .. } if definition.name == b.name))
                    })
            };
            let ready: Vec<bool> =
                waiting.iter().map(|a| !waiting.iter().any(|b| needs(a, b))).collect();
            if !ready.contains(&true) {
                sorted.extend(waiting);
                break;
            }
            let mut flags = ready.iter();
            waiting.retain(|user_type| {
                let ready = flags.next().copied().unwrap_or(true);
                if ready {
                    sorted.push(user_type);
                }
                !ready
            });
        }
        sorted
    }

    /// CREATE KEYSPACE, or a comment for a virtual one.
    pub fn to_cql(&self, ifne: bool) -> String {
        let name = maybe_quote(&self.name);
        if self.is_virtual {
            return format!(
                "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with \
                 CQL.\nStructure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
            );
        }
        format!(
            "CREATE KEYSPACE {}{name} WITH replication = {}  AND durable_writes = {};",
            if_not_exists(ifne),
            self.replication.to_cql(),
            self.durable_writes
        )
    }
}

impl Replication {
    /// The map literal. The options stand in the order of a hash map of the JVM.
    pub fn to_cql(&self) -> String {
        let simple = self.class.strip_prefix(LOCATOR).filter(|name| !name.contains('.'));
        let mut text = format!("{{'class': {}", quote(simple.unwrap_or(&self.class)));
        let capacity = jvm::copy_capacity(self.options.len() + 1);
        let names: Vec<&String> = self.options.keys().collect();
        for name in jvm::string_order(names, capacity) {
            let value = self.options.get(name).map_or("", String::as_str);
            let _ = write!(text, ", {}: {}", quote(name), quote(value));
        }
        text + "}"
    }
}

impl Signature {
    /// `name(type, type)`.
    pub fn to_cql(&self) -> String {
        format!("{}({})", maybe_quote(&self.name), self.argument_types.join(", "))
    }
}

impl Table {
    /// The statements that make the table again where it is not, with its id and the columns that
    /// were dropped: what a snapshot keeps as `schema.cql` (`SchemaCQLHelper`).
    pub fn schema_cql(&self, keyspace: &Keyspace, release: Release) -> String {
        let mut wanted = BTreeSet::new();
        self.all_columns_in_select_order().for_each(|column| name_types(&column.ty, &mut wanted));
        let ordered = keyspace.types_in_order();
        // The last one may need all before it.
        for user_type in ordered.iter().rev() {
            if wanted.contains(&user_type.name) {
                user_type.fields.iter().for_each(|(_, ty)| name_types(ty, &mut wanted));
            }
        }
        let types = ordered.into_iter().filter(|user_type| wanted.contains(&user_type.name));
        let mut statements: Vec<String> = types.map(|ty| type_to_cql(ty, true)).collect();
        statements.push(self.to_cql(true, true, release));
        let indexes = self.indexes.values().map(|index| index.to_cql(self));
        statements.extend(indexes.map(|text| text.replacen("INDEX ", "INDEX IF NOT EXISTS ", 1)));
        statements.into_iter().map(|statement| statement + "\n").collect()
    }
}

/// Adds the names of the user types in a type.
fn name_types(ty: &CqlType, names: &mut BTreeSet<String>) {
    ty.any(&mut |ty| {
        if let CqlType::Udt { definition, .. } = ty {
            names.insert(definition.name.clone());
        }
        false
    });
}

/// CREATE TYPE.
pub fn type_to_cql(user_type: &UserType, ifne: bool) -> String {
    let fields = user_type.fields.iter();
    let fields: Vec<String> =
        fields.map(|(name, ty)| format!("    {} {ty}", maybe_quote(name))).collect();
    format!(
        "CREATE TYPE {}{} (\n{}\n);",
        if_not_exists(ifne),
        full_name(&user_type.keyspace, &user_type.name),
        fields.join(",\n")
    )
}

fn function_to_cql(keyspace: &str, key: &Signature, function: &Function) -> String {
    let arguments = function.argument_names.iter().zip(&key.argument_types);
    let arguments: Vec<String> =
        arguments.map(|(name, ty)| format!("{} {ty}", maybe_quote(name))).collect();
    let null = if function.called_on_null_input { "CALLED" } else { "RETURNS NULL" };
    format!(
        "CREATE FUNCTION {}({})\n    {null} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS $${}$$;",
        full_name(keyspace, &key.name),
        arguments.join(", "),
        function.return_type,
        function.language,
        function.body
    )
}

fn aggregate_to_cql(keyspace: &str, key: &Signature, aggregate: &Aggregate) -> String {
    let mut text = format!(
        "CREATE AGGREGATE {}({})\n    SFUNC {}\n    STYPE {}",
        full_name(keyspace, &key.name),
        key.argument_types.join(", "),
        maybe_quote(&aggregate.state_func),
        aggregate.state_type
    );
    if let Some(function) = &aggregate.final_func {
        let _ = write!(text, "\n    FINALFUNC {}", maybe_quote(function));
    }
    if let Some(initial) = &aggregate.initcond {
        let _ = write!(text, "\n    INITCOND {initial}");
    }
    text + ";"
}

impl Index {
    /// CREATE INDEX.
    pub fn to_cql(&self, table: &Table) -> String {
        let target = self.options.get("target").map_or("", String::as_str);
        let (name, table) = (maybe_quote(&self.name), table.qualified_name());
        if self.kind != "CUSTOM" {
            return format!("CREATE INDEX {name} ON {table} ({target});");
        }
        let class = self.options.get("class_name").map_or("", String::as_str);
        let mut text =
            format!("CREATE CUSTOM INDEX {name} ON {table} ({target}) USING {}", quote(class));
        let options: std::collections::BTreeMap<String, String> = self
            .options
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "target" | "class_name"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !options.is_empty() {
            let _ = write!(text, " WITH OPTIONS = {}", text_map(&options));
        }
        text + ";"
    }
}

fn column_to_cql(name: &str, column: &Column) -> String {
    let mut text = format!("{} {}", maybe_quote(name), column.ty);
    if column.is_static() {
        text.push_str(" static");
    }
    if let Some(mask) = &column.mask {
        let function = maybe_quote(&mask.function_name);
        let arguments: Vec<String> = mask
            .arguments
            .iter()
            .zip(&mask.argument_types)
            .map(|(text, ty)| mask_argument(text.as_deref(), ty, column))
            .collect();
        let keyspace = maybe_quote(&mask.function_keyspace);
        let _ = write!(text, " MASKED WITH {keyspace}.{function}({})", arguments.join(", "));
    }
    text
}

/// An argument of a mask as a literal. Its type is a native one, or the column's own.
fn mask_argument(argument: Option<&str>, ty: &str, column: &Column) -> String {
    let ty = types::CqlType::native(ty).unwrap_or_else(|| column.ty.clone());
    let value = argument.and_then(|text| ty.parse_text(text, 0).ok());
    value.map_or_else(|| "null".to_owned(), |value| ty.to_cql_literal(&value))
}

fn dropped_to_cql(dropped: &DroppedColumn) -> String {
    let suffix = if dropped.kind == ColumnKind::Static { " static" } else { "" };
    format!("{} {}{suffix}", maybe_quote(&dropped.name), dropped.ty)
}

impl Table {
    /// CREATE TABLE; a comment for virtual tables and those of COMPACT STORAGE. `internals`: with
    /// the id and the columns that were dropped. With the options that this release knows.
    pub fn to_cql(&self, internals: bool, ifne: bool, release: Release) -> String {
        let (mut text, keyword) = if self.is_virtual() {
            let warning = format!(
                "/*\nWarning: Table {} is a virtual table and cannot be recreated with CQL.\n\
                 Structure, for reference:\n",
                self.qualified_name()
            );
            (warning, "VIRTUAL")
        } else if self.flags.is_compact() || self.flags.dense {
            let warning = format!(
                "/*\nWarning: Table {} omitted because it has constructs not compatible with CQL \
                 (was created via legacy API).\nApproximate structure, for reference:\n\
                 (this should not be used to reproduce this schema)\n\n",
                self.qualified_name()
            );
            (warning, "CREATE")
        } else {
            (String::new(), "CREATE")
        };
        let commented = !text.is_empty();
        let _ =
            writeln!(text, "{keyword} TABLE {}{} (", if_not_exists(ifne), self.qualified_name());
        self.columns_to_cql(&mut text, internals);
        text.push_str(") WITH ");
        text.push_str(&self.options(internals, release).join("\n    AND "));
        text.push(';');
        if commented {
            text.push_str("\n*/");
        }
        if internals {
            self.drops_to_cql(&mut text);
        }
        text
    }

    fn columns_to_cql(&self, text: &mut String, internals: bool) {
        let dropped = self.dropped_in_order();
        let compact = self.flags.is_compact() || self.flags.dense;
        let single = !compact && self.partition_key.len() == 1 && self.clustering.is_empty();
        let mut lines = Vec::new();
        for column in self.all_columns_in_create_order() {
            // what was dropped and came again is dropped and added below
            if internals && self.dropped.contains_key(&*column.name) {
                continue;
            }
            let mut shown = column.clone();
            if self.is_static_compact() && shown.is_static() {
                shown.kind = ColumnKind::Regular;
            }
            let mut line = column_to_cql(&column.name, &shown);
            if single && column.kind == ColumnKind::PartitionKey {
                line.push_str(" PRIMARY KEY");
            }
            lines.push(line);
        }
        if internals {
            lines.extend(dropped.into_iter().map(dropped_to_cql));
        }
        if !single {
            lines.push(self.primary_key_to_cql());
        }
        let _ = writeln!(text, "    {}", lines.join(",\n    "));
    }

    fn primary_key_to_cql(&self) -> String {
        let names = |columns: &[Column]| {
            let names: Vec<_> = columns.iter().map(|column| maybe_quote(&column.name)).collect();
            names.join(", ")
        };
        let mut key = names(&self.partition_key);
        if self.partition_key.len() > 1 {
            key = format!("({key})");
        }
        if !self.clustering.is_empty() && !self.is_static_compact() {
            key = format!("{key}, {}", names(&self.clustering));
        }
        format!("PRIMARY KEY ({key})")
    }

    fn options(&self, internals: bool, release: Release) -> Vec<String> {
        let mut options = Vec::new();
        if self.flags.is_compact() || self.flags.dense {
            options.push("COMPACT STORAGE".to_owned());
        }
        if internals {
            options.push(format!("ID = {}", self.id));
        }
        if !self.clustering.is_empty() {
            let order = self.clustering.iter().map(|column| {
                let direction = if column.reversed { "DESC" } else { "ASC" };
                format!("{} {direction}", maybe_quote(&column.name))
            });
            let order: Vec<String> = order.collect();
            options.push(format!("CLUSTERING ORDER BY ({})", order.join(", ")));
        }
        if self.is_virtual() {
            options.push(format!("comment = {}", quote(&self.params.comment)));
        } else {
            let of_view = self.kind == crate::TableKind::View;
            options.extend(self.params.to_cql(of_view, release));
        }
        options
    }

    /// Dropped columns in the order of a hash map of the JVM.
    fn dropped_in_order(&self) -> Vec<&DroppedColumn> {
        let names: Vec<&String> = self.dropped.keys().collect();
        jvm::bytes_order(names).into_iter().filter_map(|name| self.dropped.get(name)).collect()
    }

    fn drops_to_cql(&self, text: &mut String) {
        let table = self.qualified_name();
        for dropped in self.dropped_in_order() {
            let name = maybe_quote(&dropped.name);
            let at = dropped.dropped_at;
            let _ = write!(text, "\nALTER TABLE {table} DROP {name} USING TIMESTAMP {at};");
            if let Some(column) = self.column(&dropped.name) {
                let column = column_to_cql(&column.name, column);
                let _ = write!(text, "\nALTER TABLE {table} ADD {column};");
            }
        }
    }
}

impl TableParams {
    /// The options as `name = value`, in the order of their names but for two.
    fn to_cql(&self, is_view: bool, release: Release) -> Vec<String> {
        let extensions = self.extensions.iter().map(|(name, bytes)| {
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            (name, format!("0x{hex}"))
        });
        let mut options = vec![
            format!("additional_write_policy = '{}'", self.additional_write_policy),
            format!("allow_auto_snapshot = {}", self.allow_auto_snapshot),
            format!("bloom_filter_fp_chance = {}", jvm::double(self.bloom_filter_fp_chance)),
            format!("caching = {}", text_map(&self.caching.to_map())),
            format!("cdc = {}", self.cdc),
            format!("comment = {}", quote(&self.comment)),
            format!("compaction = {}", text_map(&self.compaction.to_map())),
            format!("compression = {}", text_map(&self.compression.to_map())),
            format!("memtable = {}", quote(&self.memtable)),
            format!("crc_check_chance = {}", jvm::double(self.crc_check_chance)),
        ];
        if !is_view {
            options.push(format!("default_time_to_live = {}", self.default_time_to_live));
        }
        options.extend([
            format!("extensions = {}", map(extensions)),
            format!("gc_grace_seconds = {}", self.gc_grace_seconds),
            format!("incremental_backups = {}", self.incremental_backups),
            format!("max_index_interval = {}", self.max_index_interval),
            format!("memtable_flush_period_in_ms = {}", self.memtable_flush_period_in_ms),
            format!("min_index_interval = {}", self.min_index_interval),
            format!("read_repair = '{}'", self.read_repair.name()),
            format!("speculative_retry = '{}'", self.speculative_retry),
        ]);
        options.retain(|option| release.has_option(option.split(' ').next().unwrap_or_default()));
        options
    }
}

impl View {
    /// CREATE MATERIALIZED VIEW.
    pub fn to_cql(&self, internals: bool, release: Release) -> String {
        let table = &self.table;
        let columns = if self.include_all_columns {
            "*".to_owned()
        } else {
            let columns = table.all_columns_in_select_order();
            let names: Vec<_> = columns.map(|column| maybe_quote(&column.name)).collect();
            names.join(", ")
        };
        format!(
            "CREATE MATERIALIZED VIEW {} AS\n    SELECT {columns}\n    FROM {}\n    WHERE {}\n    {}\n WITH {};",
            table.qualified_name(),
            full_name(&table.keyspace, &self.base_table_name),
            self.where_clause,
            table.primary_key_to_cql(),
            table.options(internals, release).join("\n    AND ")
        )
    }
}
