//! Changes of the schema by statements: what may be asked, Cassandra's validations in Cassandra's
//! order, and what comes of it.

mod compatible;
mod indexes;
mod keyspaces;
mod replication_options;
pub(crate) mod tables;
mod types;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::types::{CqlType, java_order};

use crate::column::ColumnMask;
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::properties::PropertyValue;
use crate::schema::Schema;
use crate::stored::SchemaMutation;
use crate::stored::encode::{REPLICATED_SYSTEM_KEYSPACES, Stamp, diff};
use crate::table_id::TableId;

/// The longest name of a keyspace, in characters (`SchemaConstants.NAME_LENGTH`).
pub const MAX_KEYSPACE_NAME: usize = 48;
/// The longest name of a table, in characters: with the id and a separator it must do for a
/// directory (`SchemaConstants.TABLE_NAME_LENGTH`).
pub const MAX_TABLE_NAME: usize = 222;

/// A column in a statement, its type resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: CqlType,
    /// STATIC?
    pub is_static: bool,
    /// MASKED WITH.
    pub mask: Option<Arc<ColumnMask>>,
}

/// A statement that changes the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The keyspace that it changes.
    pub keyspace: String,
    /// What it does there.
    pub action: Action,
}

/// What a statement does to a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// CREATE KEYSPACE.
    CreateKeyspace {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// After WITH.
        properties: Vec<(String, PropertyValue)>,
    },
    /// ALTER KEYSPACE.
    AlterKeyspace {
        /// IF EXISTS.
        if_exists: bool,
        /// After WITH.
        properties: Vec<(String, PropertyValue)>,
    },
    /// DROP KEYSPACE.
    DropKeyspace {
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// ALTER TABLE.
    AlterTable {
        /// The table.
        table: String,
        /// IF EXISTS.
        if_exists: bool,
        /// What it alters.
        alteration: TableAlteration,
    },
    /// DROP TABLE.
    DropTable {
        /// The table.
        table: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE INDEX, of a class that Cassandra itself keeps.
    CreateIndex(CreateIndex),
    /// DROP INDEX.
    DropIndex {
        /// The table that has it.
        table: String,
        /// Its name.
        index: String,
    },
    /// CREATE TYPE.
    CreateType {
        /// The type.
        name: String,
        /// Its fields.
        fields: Vec<(String, CqlType)>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// ALTER TYPE.
    AlterType {
        /// The type.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// What it alters.
        alteration: TypeAlteration,
    },
    /// DROP TYPE.
    DropType {
        /// The type.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// A statement about what we do not serve.
    Unsupported(Unsupported),
}

/// What CREATE TABLE asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTable {
    /// The table.
    pub table: String,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Columns in the order of the statement.
    pub columns: Vec<ColumnSpec>,
    /// Names of the columns of the partition key.
    pub partition_key: Vec<String>,
    /// Names of the clustering columns.
    pub clustering: Vec<String>,
    /// CLUSTERING ORDER BY: name, and whether it descends.
    pub clustering_order: Vec<(String, bool)>,
    /// After WITH.
    pub properties: Vec<(String, PropertyValue)>,
    /// COMPACT STORAGE?
    pub compact_storage: bool,
}

/// What CREATE INDEX asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    /// The table.
    pub table: String,
    /// The name, if it is given one.
    pub name: Option<String>,
    /// The column.
    pub column: String,
    /// What of it, as the schema has it: `column`, `keys(column)` and the like.
    pub target: String,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
}

/// What ALTER TABLE alters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableAlteration {
    /// ADD.
    AddColumns {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The columns.
        columns: Vec<ColumnSpec>,
    },
    /// DROP.
    DropColumns {
        /// IF EXISTS.
        if_exists: bool,
        /// Their names.
        columns: Vec<String>,
        /// USING TIMESTAMP, in microseconds.
        timestamp: Option<i64>,
    },
    /// RENAME.
    RenameColumns {
        /// IF EXISTS.
        if_exists: bool,
        /// From and to.
        columns: Vec<(String, String)>,
    },
    /// WITH.
    Options(Vec<(String, PropertyValue)>),
    /// ALTER column TYPE: no longer possible.
    AlterColumnType,
    /// ALTER column MASKED WITH, or DROP MASKED.
    Mask {
        /// IF EXISTS.
        if_exists: bool,
        /// The column.
        column: String,
        /// MASKED WITH; none: DROP MASKED.
        mask: Option<Arc<ColumnMask>>,
    },
    /// DROP COMPACT STORAGE.
    DropCompactStorage,
}

/// What ALTER TYPE alters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeAlteration {
    /// ADD.
    AddField {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Name of the field.
        name: String,
        /// Its type.
        ty: CqlType,
    },
    /// RENAME.
    RenameFields {
        /// IF EXISTS.
        if_exists: bool,
        /// From and to.
        fields: Vec<(String, String)>,
    },
    /// ALTER field TYPE: no longer possible.
    AlterFieldType,
}

/// What we do not serve: Cassandra's error for a node where it is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// CREATE, ALTER, DROP MATERIALIZED VIEW.
    View,
    /// CREATE FUNCTION, DROP FUNCTION.
    Function,
    /// CREATE AGGREGATE, DROP AGGREGATE.
    Aggregate,
    /// CREATE TRIGGER, DROP TRIGGER.
    Trigger,
}

/// What of the node and the cluster a change depends on.
#[derive(Clone, Debug)]
pub struct ChangeOptions {
    /// Nodes by datacenter, of those that own tokens.
    pub datacenters: BTreeMap<String, usize>,
    /// `default_keyspace_rf`.
    pub default_replication: u32,
    /// `cdc_enabled`.
    pub cdc_enabled: bool,
    /// `transient_replication_enabled`, on a node of one token.
    pub transient_replication: bool,
    /// Names of memtable configurations besides `default`.
    pub memtables: Vec<String>,
    /// `drop_compact_storage_enabled`.
    pub drop_compact_storage: bool,
    /// Why the ring cannot do without COMPACT STORAGE yet.
    pub keeps_compact_storage: Option<String>,
    /// `dynamic_data_masking_enabled`.
    pub masking: bool,
    /// "Now" in seconds since the epoch: local deletion time of tombstones.
    pub now: i64,
}

/// How an object changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It is different.
    Updated,
    /// It is gone.
    Dropped,
}

/// What object changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The keyspace itself.
    Keyspace,
    /// A table, or a materialized view.
    Table(String),
    /// A user type.
    Type(String),
    /// A function: name and argument types.
    Function(String, Vec<String>),
    /// An aggregate: name and argument types.
    Aggregate(String, Vec<String>),
}

/// A change as clients are told of it (SCHEMA_CHANGE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaEvent {
    /// How.
    pub kind: ChangeKind,
    /// In which keyspace.
    pub keyspace: String,
    /// What.
    pub target: Target,
}

/// What comes of a statement.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The schema after it. Its version is that from before: the digest follows from the stored
    /// rows once the mutations are merged into them; see [`SchemaState`](crate::SchemaState).
    pub schema: Schema,
    /// Mutations of `system_schema`; none if nothing changed.
    pub mutations: Vec<SchemaMutation>,
    /// The statement's own result; `None` = nothing changed, answer VOID.
    pub event: Option<SchemaEvent>,
    /// Events for clients that registered for them.
    pub events: Vec<SchemaEvent>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self {
            datacenters: [("datacenter1".to_owned(), 1)].into(),
            default_replication: 1,
            cdc_enabled: false,
            transient_replication: false,
            memtables: Vec::new(),
            drop_compact_storage: false,
            keeps_compact_storage: None,
            masking: false,
            now: 0,
        }
    }
}

/// What a statement makes of a keyspace.
enum Outcome {
    /// Nothing.
    Unchanged,
    /// This keyspace.
    Changed(Box<Keyspace>),
    /// It is gone.
    Gone,
}

/// What a statement's parts need to know.
struct Context<'a> {
    schema: &'a Schema,
    keyspace: &'a str,
    timestamp: i64,
    new_id: TableId,
    options: &'a ChangeOptions,
    warnings: Vec<String>,
}

/// Applies a statement to a schema. `timestamp`: of the mutations, in microseconds; `new_id`: the
/// id of the table if it creates one.
pub fn apply(
    schema: &Schema,
    change: &SchemaChange,
    timestamp: i64,
    new_id: TableId,
    options: &ChangeOptions,
) -> Result<Applied, SchemaError> {
    authorize(change)?;
    check_keyspace_name(&change.keyspace)?;
    let mut context = Context {
        schema,
        keyspace: &change.keyspace,
        timestamp,
        new_id,
        options,
        warnings: Vec::new(),
    };
    let outcome = context.run(&change.action)?;
    let mut warnings = context.warnings;
    let before = schema.keyspace(&change.keyspace);
    let after = match outcome {
        Outcome::Unchanged => before.cloned(),
        Outcome::Changed(keyspace) => Some(Arc::new(*keyspace)),
        Outcome::Gone => None,
    };
    let stamp = Stamp { timestamp, now: options.now, cdc: options.cdc_enabled };
    let (old, new) = (before.map(AsRef::as_ref), after.as_deref());
    let mutations: Vec<SchemaMutation> = diff(old, new, stamp).into_iter().collect();
    mutations.iter().try_for_each(check_lengths)?;
    let changed = !mutations.is_empty();
    if changed && let (Some(old), Some(new)) = (old, new) {
        warnings.extend(keyspaces::growth_warning(old, new));
    }
    Ok(Applied {
        schema: schema.with_keyspace(&change.keyspace, after.clone()),
        mutations,
        event: changed.then(|| change.event()),
        events: events(old, new),
        warnings,
    })
}

impl Context<'_> {
    fn run(&mut self, action: &Action) -> Result<Outcome, SchemaError> {
        match action {
            Action::CreateKeyspace { if_not_exists, properties } => {
                self.create_keyspace(*if_not_exists, properties)
            }
            Action::AlterKeyspace { if_exists, properties } => {
                self.alter_keyspace(*if_exists, properties)
            }
            Action::DropKeyspace { if_exists } => self.drop_keyspace(*if_exists),
            Action::CreateTable(create) => self.create_table(create),
            Action::AlterTable { table, if_exists, alteration } => {
                self.alter_table(table, *if_exists, alteration)
            }
            Action::DropTable { table, if_exists } => self.drop_table(table, *if_exists),
            Action::CreateIndex(create) => self.create_index(create),
            Action::DropIndex { table, index } => self.drop_index(table, index),
            Action::CreateType { name, fields, if_not_exists } => {
                self.create_type(name, fields, *if_not_exists)
            }
            Action::AlterType { name, if_exists, alteration } => {
                self.alter_type(name, *if_exists, alteration)
            }
            Action::DropType { name, if_exists } => self.drop_type(name, *if_exists),
            Action::Unsupported(what) => Err(what.error()),
        }
    }

    /// The keyspace, if there is one.
    fn current(&self) -> Option<&Arc<Keyspace>> {
        self.schema.keyspace(self.keyspace)
    }

    /// The keyspace to create something in.
    fn existing(&self) -> Result<&Arc<Keyspace>, SchemaError> {
        let missing =
            || SchemaError::Invalid(format!("Keyspace '{}' doesn't exist", self.keyspace));
        self.current().ok_or_else(missing)
    }
}

impl Unsupported {
    /// Cassandra's error where the feature is disabled.
    pub fn error(self) -> SchemaError {
        SchemaError::Invalid(match self {
            Self::View => {
                "Materialized views are disabled. Enable in cassandra.yaml to use.".into()
            }
            Self::Function | Self::Aggregate => "User-defined functions are disabled in \
                 cassandra.yaml - set user_defined_functions_enabled=true to enable"
                .into(),
            Self::Trigger => "Triggers are not supported".into(),
        })
    }
}

impl SchemaChange {
    /// How clients are told of it.
    fn event(&self) -> SchemaEvent {
        use ChangeKind::{Created, Dropped, Updated};
        let (kind, target) = match &self.action {
            Action::CreateKeyspace { .. } => (Created, Target::Keyspace),
            Action::AlterKeyspace { .. } | Action::Unsupported(_) => (Updated, Target::Keyspace),
            Action::DropKeyspace { .. } => (Dropped, Target::Keyspace),
            Action::CreateTable(create) => (Created, Target::Table(create.table.clone())),
            Action::AlterTable { table, .. } => (Updated, Target::Table(table.clone())),
            Action::DropTable { table, .. } => (Dropped, Target::Table(table.clone())),
            Action::CreateIndex(create) => (Updated, Target::Table(create.table.clone())),
            Action::DropIndex { table, .. } => (Updated, Target::Table(table.clone())),
            Action::CreateType { name, .. } => (Created, Target::Type(name.clone())),
            Action::AlterType { name, .. } => (Updated, Target::Type(name.clone())),
            Action::DropType { name, .. } => (Dropped, Target::Type(name.clone())),
        };
        SchemaEvent { kind, keyspace: self.keyspace.clone(), target }
    }
}

/// The system's own keyspaces are not for clients to change
/// (`ClientState.preventSystemKSSchemaModification`).
fn authorize(change: &SchemaChange) -> Result<(), SchemaError> {
    let name = change.keyspace.to_ascii_lowercase();
    let keyspace = &change.keyspace;
    if crate::stored::is_local(&name) {
        // permission to create keyspaces is asked on all of them, so this one fails later
        if matches!(change.action, Action::CreateKeyspace { .. }) {
            let text = format!("System keyspace '{keyspace}' is not user-modifiable");
            return Err(SchemaError::Invalid(text));
        }
        let text = format!("{keyspace} keyspace is not user-modifiable.");
        return Err(SchemaError::Unauthorized(text));
    }
    if !REPLICATED_SYSTEM_KEYSPACES.contains(&name.as_str()) {
        return Ok(());
    }
    let all_tables = format!("<all tables in {keyspace}>");
    let one = |table: &str| format!("<table {keyspace}.{table}>");
    let (permission, resource) = match &change.action {
        Action::CreateKeyspace { .. } | Action::AlterKeyspace { .. } => return Ok(()),
        Action::DropKeyspace { .. } => ("DROP", format!("<keyspace {keyspace}>")),
        Action::CreateTable(_) | Action::CreateType { .. } => ("CREATE", all_tables),
        Action::AlterTable { table, .. } => ("ALTER", one(table)),
        Action::DropTable { table, .. } => ("DROP", one(table)),
        Action::CreateIndex(create) => ("ALTER", one(&create.table)),
        Action::DropIndex { table, .. } => ("ALTER", one(table)),
        Action::AlterType { .. } => ("ALTER", all_tables),
        Action::DropType { .. } => ("DROP", all_tables),
        Action::Unsupported(_) => ("ALTER", format!("<keyspace {keyspace}>")),
    };
    Err(SchemaError::Unauthorized(format!("Cannot {permission} {resource}")))
}

/// A name's place in a row of `system_schema` has two bytes for its length, in files and in what
/// nodes say.
fn check_lengths(mutation: &SchemaMutation) -> Result<(), SchemaError> {
    let most = usize::from(u16::MAX);
    let mut names = mutation.updates.values().flat_map(|update| update.rows.keys()).flatten();
    match names.find(|name| name.len() > most) {
        Some(name) => SchemaError::invalid(format!(
            "A name of {} bytes is longer than the maximum of {most}",
            name.len()
        )),
        None => Ok(()),
    }
}

pub(crate) fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(crate) fn check_keyspace_name(name: &str) -> Result<(), SchemaError> {
    if !is_word(name) {
        return SchemaError::invalid(format!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore \
             characters only (got \"{name}\")"
        ));
    }
    if name.len() > MAX_KEYSPACE_NAME {
        return SchemaError::invalid(format!(
            "Keyspace name must not be more than {MAX_KEYSPACE_NAME} characters long (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}

/// What clients are told when `before` becomes `after`: parts before the whole when it goes, the
/// whole before its parts when it comes.
pub(crate) fn events(before: Option<&Keyspace>, after: Option<&Keyspace>) -> Vec<SchemaEvent> {
    let Some(name) = before.or(after).map(|keyspace| keyspace.name.clone()) else {
        return Vec::new();
    };
    let (old, new) = (parts(before), parts(after));
    let keys: BTreeSet<&Target> = old.keys().chain(new.keys()).collect();
    let mut events = Vec::new();
    for target in keys {
        let kinds: &[ChangeKind] = match (old.get(target), new.get(target)) {
            (None, Some(_)) => &[ChangeKind::Created],
            (Some(_), None) => &[ChangeKind::Dropped],
            // another table of that name
            (Some(Part::Table(a)), Some(Part::Table(b))) if a.id != b.id => {
                &[ChangeKind::Dropped, ChangeKind::Created]
            }
            (Some(a), Some(b)) if a != b => &[ChangeKind::Updated],
            _ => continue,
        };
        let event = |kind: &ChangeKind| SchemaEvent {
            kind: *kind,
            keyspace: name.clone(),
            target: target.clone(),
        };
        events.extend(kinds.iter().map(event));
    }
    let turn = |event: &SchemaEvent| turn(event, after.is_some());
    events.sort_by(|a, b| turn(a).cmp(&turn(b)).then_with(|| compare_types(a, b)));
    events
}

/// The order of types (`Types`); others stay where they are.
fn compare_types(a: &SchemaEvent, b: &SchemaEvent) -> Ordering {
    match (&a.target, &b.target) {
        (Target::Type(a), Target::Type(b)) => java_order::buffers(a.as_bytes(), b.as_bytes()),
        _ => Ordering::Equal,
    }
}

/// When clients are told of an event, before others: first of what went, of parts before what they
/// are made of, then of what came, the other way round, then of what was altered
/// (`SchemaChangeNotifier`).
pub(crate) fn turn(event: &SchemaEvent, stays: bool) -> (u8, u8) {
    let rank = match event.target {
        Target::Keyspace => 0,
        Target::Type(_) => 1,
        Target::Table(_) => 2,
        Target::Function(..) => 3,
        Target::Aggregate(..) => 4,
    };
    match event.kind {
        ChangeKind::Dropped => (0, u8::MAX - rank),
        ChangeKind::Created if stays => (1, rank),
        ChangeKind::Created => (0, 0),
        ChangeKind::Updated => (2, rank),
    }
}

/// A part of a keyspace, to compare with another.
#[derive(PartialEq)]
enum Part<'a> {
    Keyspace(bool, &'a crate::Replication),
    Table(&'a crate::Table),
    Type(&'a ::types::UserType),
    Function(&'a crate::Function),
    Aggregate(&'a crate::Aggregate),
}

fn parts(keyspace: Option<&Keyspace>) -> BTreeMap<Target, Part<'_>> {
    let mut parts = BTreeMap::new();
    let Some(keyspace) = keyspace else { return parts };
    parts.insert(Target::Keyspace, Part::Keyspace(keyspace.durable_writes, &keyspace.replication));
    let views = keyspace.views.values().map(|view| &view.table);
    for table in keyspace.tables.values().chain(views) {
        parts.insert(Target::Table(table.name.clone()), Part::Table(table));
    }
    for (name, user_type) in &keyspace.types {
        parts.insert(Target::Type(name.clone()), Part::Type(user_type));
    }
    for (key, function) in &keyspace.functions {
        let target = Target::Function(key.name.clone(), key.argument_types.clone());
        parts.insert(target, Part::Function(function));
    }
    for (key, aggregate) in &keyspace.aggregates {
        let target = Target::Aggregate(key.name.clone(), key.argument_types.clone());
        parts.insert(target, Part::Aggregate(aggregate));
    }
    parts
}
