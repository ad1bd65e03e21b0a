//! Statements about views, functions, aggregates and triggers. They are not served: Cassandra's
//! answers where the feature is disabled or the object does not exist, and a clear error otherwise.

use schema::{Keyspace, Schema};

use super::{DdlKind, raw_type};
use crate::ast::{self, QualifiedName, RawType, Statement};
use crate::error::CqlError;
use crate::scope::Scope;

#[derive(Clone, Debug)]
pub(super) enum Unserved {
    CreateView(String),
    AlterView { name: String, if_exists: bool },
    DropView { name: String, if_exists: bool },
    CreateFunction(Box<ast::CreateFunction>),
    DropFunction(ast::DropFunction),
    CreateAggregate(Box<ast::CreateAggregate>),
    DropAggregate(ast::DropFunction),
    CreateTrigger(ast::CreateTrigger),
    DropTrigger(ast::DropTrigger),
}

/// What can be called by name and argument types.
#[derive(Clone, Copy)]
enum Callable {
    Function,
    Aggregate,
}

fn fail<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::Invalid(message.into()))
}

impl Unserved {
    /// What the statement says, and its keyspace.
    pub(super) fn prepare(
        statement: &Statement,
        scope: &Scope<'_>,
    ) -> Result<(String, Self), CqlError> {
        let of = |name: &QualifiedName| scope.keyspace_of(name).map(str::to_owned);
        Ok(match statement {
            Statement::CreateView(create) => {
                let keyspace = of(&create.name)?;
                if create.base.keyspace.as_ref().is_some_and(|base| *base != keyspace) {
                    return fail(
                        "Cannot create a materialized view on a table in a different keyspace",
                    );
                }
                if !scope.variables.is_empty() {
                    return fail(
                        "Bind variables are not allowed in CREATE MATERIALIZED VIEW statements",
                    );
                }
                (keyspace, Self::CreateView(create.name.name.clone()))
            }
            Statement::AlterView(alter) => {
                let (name, if_exists) = (alter.name.name.clone(), alter.if_exists);
                (of(&alter.name)?, Self::AlterView { name, if_exists })
            }
            Statement::DropView(drop) => {
                let (name, if_exists) = (drop.name.name.clone(), drop.if_exists);
                (of(&drop.name)?, Self::DropView { name, if_exists })
            }
            Statement::CreateFunction(create) => {
                (of(&create.name)?, Self::CreateFunction(create.clone()))
            }
            Statement::DropFunction(drop) => (of(&drop.name)?, Self::DropFunction(drop.clone())),
            Statement::CreateAggregate(create) => {
                (of(&create.name)?, Self::CreateAggregate(create.clone()))
            }
            Statement::DropAggregate(drop) => (of(&drop.name)?, Self::DropAggregate(drop.clone())),
            Statement::CreateTrigger(create) => {
                (of(&create.table)?, Self::CreateTrigger(create.clone()))
            }
            Statement::DropTrigger(drop) => (of(&drop.table)?, Self::DropTrigger(drop.clone())),
            _ => return Err(CqlError::unsupported("This statement")),
        })
    }

    /// Which statement it is, and what it is about.
    pub(super) fn subject(&self) -> (DdlKind, Option<&str>) {
        let (kind, name) = match self {
            Self::CreateView(name) => (DdlKind::CreateView, name),
            Self::AlterView { name, .. } => (DdlKind::AlterView, name),
            Self::DropView { name, .. } => (DdlKind::DropView, name),
            Self::CreateFunction(create) => (DdlKind::CreateFunction, &create.name.name),
            Self::DropFunction(drop) => (DdlKind::DropFunction, &drop.name.name),
            Self::CreateAggregate(create) => (DdlKind::CreateAggregate, &create.name.name),
            Self::DropAggregate(drop) => (DdlKind::DropAggregate, &drop.name.name),
            Self::CreateTrigger(create) => (DdlKind::CreateTrigger, &create.name),
            Self::DropTrigger(drop) => (DdlKind::DropTrigger, &drop.name),
        };
        (kind, Some(name))
    }

    /// The error, or nothing to do.
    pub(super) fn outcome(&self, name: &str, schema: &Schema) -> Result<(), CqlError> {
        let keyspace = schema.keyspace(name).map(AsRef::as_ref);
        match self {
            Self::CreateView(_) => {
                fail("Materialized views are disabled. Enable in cassandra.yaml to use.")
            }
            Self::AlterView { name: view, if_exists } => {
                existing_view(name, keyspace, view, *if_exists, "ALTER MATERIALIZED VIEW")
            }
            Self::DropView { name: view, if_exists } => {
                existing_view(name, keyspace, view, *if_exists, "DROP MATERIALIZED VIEW")
            }
            Self::CreateFunction(create) => create_function(create),
            Self::DropFunction(drop) => drop_callable(drop, name, keyspace, Callable::Function),
            Self::CreateAggregate(create) => create_aggregate(create, name, keyspace),
            Self::DropAggregate(drop) => drop_callable(drop, name, keyspace, Callable::Aggregate),
            Self::CreateTrigger(create) => create_trigger(create, name, keyspace),
            Self::DropTrigger(drop) => drop_trigger(drop, name, keyspace),
        }
    }
}

fn existing_view(
    name: &str,
    keyspace: Option<&Keyspace>,
    view: &str,
    if_exists: bool,
    statement: &str,
) -> Result<(), CqlError> {
    if keyspace.is_some_and(|keyspace| keyspace.views.contains_key(view)) {
        return Err(CqlError::unsupported(statement));
    }
    if if_exists {
        return Ok(());
    }
    fail(format!("Materialized view '{name}.{view}' doesn't exist"))
}

fn create_function(create: &ast::CreateFunction) -> Result<(), CqlError> {
    if create.or_replace && create.if_not_exists {
        return fail("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives");
    }
    fail(
        "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true \
         to enable",
    )
}

fn check_unfrozen(what: &str, raw: &RawType) -> Result<(), CqlError> {
    if !raw_type::is_explicitly_frozen(raw) {
        return Ok(());
    }
    let shown = raw_type::shown(raw);
    fail(format!("{what} '{shown}' cannot be frozen; remove frozen<> modifier from '{shown}'"))
}

/// The names that the schema has for argument types.
fn stored_names<'a>(
    types: impl IntoIterator<Item = &'a RawType>,
    keyspace: &Keyspace,
) -> Result<Vec<String>, CqlError> {
    let name = |ty: &RawType| Ok(raw_type::resolve(ty, keyspace)?.cql_name());
    types.into_iter().map(name).collect()
}

fn drop_callable(
    drop: &ast::DropFunction,
    name: &str,
    keyspace: Option<&Keyspace>,
    callable: Callable,
) -> Result<(), CqlError> {
    let (kind, statement) = match callable {
        Callable::Function => ("Function", "DROP FUNCTION"),
        Callable::Aggregate => ("Aggregate", "DROP AGGREGATE"),
    };
    let own = &drop.name.name;
    let shown = match &drop.arguments {
        None => format!("{name}.{own}"),
        Some(types) => {
            let types: Vec<String> = types.iter().map(raw_type::shown).collect();
            format!("{name}.{own}({})", types.join(", "))
        }
    };
    if let Some(keyspace) = keyspace {
        let signatures = keyspace.functions.keys().chain(keyspace.aggregates.keys());
        let overloads = signatures.filter(|key| key.name == *own).count();
        if overloads > 1 && drop.arguments.is_none() {
            return fail(format!(
                "'{statement} {own}' matches multiple function definitions; specify the argument types by \
                 issuing a statement like '{statement} {own} (type, type, ...)'. You can use cqlsh \
                 'DESCRIBE {} {own}' command to find all overloads",
                kind.to_ascii_uppercase()
            ));
        }
        let arguments = drop.arguments.iter().flatten();
        arguments.clone().try_for_each(|ty| check_unfrozen("Argument", ty))?;
        let wanted = stored_names(arguments, keyspace)?;
        let is_it = |key: &schema::Signature| {
            key.name == *own && (drop.arguments.is_none() || key.argument_types == wanted)
        };
        let exists = match callable {
            Callable::Function => keyspace.functions.keys().any(is_it),
            Callable::Aggregate => keyspace.aggregates.keys().any(is_it),
        };
        if exists {
            return Err(CqlError::unsupported(statement));
        }
    }
    if drop.if_exists {
        return Ok(());
    }
    fail(format!("{kind} '{shown}' doesn't exist"))
}

fn create_aggregate(
    create: &ast::CreateAggregate,
    name: &str,
    keyspace: Option<&Keyspace>,
) -> Result<(), CqlError> {
    // the permission on the state function is asked before all else, and that takes its types
    let Some(keyspace) = keyspace else {
        return Err(CqlError::Config(format!("Keyspace {name} doesn't exist")));
    };
    let state_arguments = || std::iter::once(&create.state_type).chain(&create.arguments);
    let wanted = stored_names(state_arguments(), keyspace)?;
    if create.or_replace && create.if_not_exists {
        return fail("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives");
    }
    create.arguments.iter().try_for_each(|ty| check_unfrozen("Argument", ty))?;
    check_unfrozen("State type", &create.state_type)?;
    let is_it =
        |key: &schema::Signature| key.name == create.state_function && key.argument_types == wanted;
    if keyspace.functions.keys().any(is_it) {
        return Err(CqlError::unsupported("CREATE AGGREGATE"));
    }
    let types: Vec<String> = state_arguments().map(|ty| raw_type::shown_in(ty, name)).collect();
    let types = types.join(", ");
    fail(format!("State function {name}.{}({types}) doesn't exist", create.state_function))
}

fn create_trigger(
    create: &ast::CreateTrigger,
    name: &str,
    keyspace: Option<&Keyspace>,
) -> Result<(), CqlError> {
    let Some(keyspace) = keyspace else {
        return fail(format!("Keyspace '{name}' doesn't exist"));
    };
    let Some(table) = keyspace.table_or_view(&create.table.name) else {
        return fail(format!("Table '{}' doesn't exist", create.table.name));
    };
    if table.kind == schema::TableKind::View {
        return fail("Cannot CREATE TRIGGER for a materialized view");
    }
    if table.triggers.contains_key(&create.name) {
        if create.if_not_exists {
            return Ok(());
        }
        return fail(format!("Trigger '{}' already exists", create.name));
    }
    // there is no JVM to load any
    fail(format!("Trigger class '{}' couldn't be loaded", create.class))
}

fn drop_trigger(
    drop: &ast::DropTrigger,
    name: &str,
    keyspace: Option<&Keyspace>,
) -> Result<(), CqlError> {
    let table = keyspace.and_then(|keyspace| keyspace.tables.get(&drop.table.name));
    if table.is_some_and(|table| table.triggers.contains_key(&drop.name)) {
        return Err(CqlError::unsupported("DROP TRIGGER"));
    }
    if drop.if_exists {
        return Ok(());
    }
    fail(format!("Trigger '{}' on '{name}.{}' doesn't exist", drop.name, drop.table.name))
}
