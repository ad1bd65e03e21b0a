//! What a modification does to a column.

use std::sync::Arc;

use schema::{Column, Table};
use types::CqlType;

use crate::ast::{self, ColumnPart, Term as Raw};
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::function::number::is_number;
use crate::term::{Term, part, text};

/// One operation on one column.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Index of the column in the layout of static or regular columns.
    pub column: u16,
    /// Its type.
    pub ty: CqlType,
    /// Is it static?
    pub is_static: bool,
    /// What happens to it.
    pub action: Action,
}

/// What happens to a column.
#[derive(Clone, Debug)]
pub enum Action {
    /// `c = v`.
    Set(Term),
    /// `l = l + v`.
    Append(Term),
    /// `l = v + l`.
    Prepend(Term),
    /// `s = s + v`, `m = m + v`.
    Add(Term),
    /// `s = s - v`, `m = m - v`: the elements or keys.
    Remove(Term),
    /// `m[k] = v`.
    Put(Term, Term),
    /// `u.f = v`: the index of the field.
    SetField(u16, Term),
    /// `c = c + v` of a counter.
    Increment(Term),
    /// `c = c - v` of a counter.
    Decrement(Term),
    /// `c = c + v` of a number or a text. Reads it first; in conditional statements only.
    AddToValue(Term),
    /// `DELETE c`.
    Delete,
    /// `DELETE s[v]`, `DELETE m[k]`.
    DeleteElement(Term),
    /// `DELETE u.f`: the index of the field.
    DeleteField(u16),
    /// `l[i] = v`. Reads the list first.
    SetIndex(Term, Term),
    /// `l = l - v`. Reads the list first.
    RemoveValues(Term),
    /// `DELETE l[i]`. Reads the list first.
    DeleteIndex(Term),
}

impl Operation {
    /// Must the column be read first?
    pub fn needs_read(&self) -> bool {
        matches!(
            self.action,
            Action::SetIndex(..)
                | Action::RemoveValues(_)
                | Action::DeleteIndex(_)
                | Action::AddToValue(_)
        )
    }

    /// Its terms, in the order in which they are evaluated. They are, whatever is stored.
    #[inline]
    pub fn terms(&self) -> (Option<&Term>, Option<&Term>) {
        match &self.action {
            Action::Set(term)
            | Action::Append(term)
            | Action::Prepend(term)
            | Action::Add(term)
            | Action::Remove(term)
            | Action::SetField(_, term)
            | Action::Increment(term)
            | Action::Decrement(term)
            | Action::AddToValue(term)
            | Action::DeleteElement(term)
            | Action::RemoveValues(term)
            | Action::DeleteIndex(term) => (Some(term), None),
            Action::Put(first, second) | Action::SetIndex(first, second) => {
                (Some(first), Some(second))
            }
            Action::Delete | Action::DeleteField(_) => (None, None),
        }
    }

    /// Has the guard look at an operation that reads a list first.
    pub fn guard(&self, bind: &Bind<'_>) -> Result<(), CqlError> {
        let what = match self.action {
            Action::SetIndex(..) => "Setting of list items by index",
            Action::RemoveValues(_) => "Removal of list items",
            Action::DeleteIndex(_) => "Removal of list items by index",
            _ => return Ok(()),
        };
        bind.guarded(|guard| guard.list_operation(what))
    }

    fn new(column: &Column, action: Action) -> Self {
        Self { column: column.index, ty: column.ty.clone(), is_static: column.is_static(), action }
    }

    /// `column = term`.
    pub fn set(
        column: &Column,
        raw: &Raw,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let spec = ColumnSpec::of_column(table, column);
        let term = Term::prepare(raw, &table.keyspace, &spec, scope)?;
        if matches!(raw, Raw::Tuple(_)) && column.ty.is_multicell() {
            // Cassandra takes it for a frozen type only; its own answer here is an internal error.
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {} of the non-frozen type {}",
                column.name, column.ty
            )));
        }
        if column.ty == CqlType::Counter {
            return Err(CqlError::invalid(format!(
                "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
                column.name
            )));
        }
        Ok(Self::new(column, Action::Set(term)))
    }

    /// A value for a column, of a term that is prepared already.
    pub fn set_term(column: &Column, term: Term) -> Self {
        Self::new(column, Action::Set(term))
    }

    /// An assignment of an UPDATE. A conditional one reads what is there, and may add to it.
    pub fn assign(
        column: &Column,
        operation: &ast::Operation,
        conditional: bool,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let action = match operation {
            ast::Operation::Set(raw) => return Self::set(column, raw, table, scope),
            ast::Operation::Add(raw) => add(column, raw, conditional, table, scope)?,
            ast::Operation::Subtract(raw) => subtract(column, raw, table, scope)?,
            ast::Operation::Prepend(raw) => prepend(column, raw, table, scope)?,
            ast::Operation::SetElement(key, raw) => set_element(column, key, raw, table, scope)?,
            ast::Operation::SetField(field, raw) => set_field(column, field, raw, table, scope)?,
        };
        Ok(Self::new(column, action))
    }

    /// A target of a DELETE.
    pub fn delete(
        column: &Column,
        part: &ColumnPart,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let action = match part {
            ColumnPart::Whole => Action::Delete,
            ColumnPart::Element(raw) => delete_element(column, raw, table, scope)?,
            ColumnPart::Field(field) => delete_field(column, field)?,
        };
        Ok(Self::new(column, action))
    }
}

fn refuse<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

fn refuse_operation<T>(operation: &str, what: &str, column: &Column) -> Result<T, CqlError> {
    refuse(format!("Invalid operation ({operation}) for {what} column {}", column.name))
}

fn add(
    column: &Column,
    raw: &Raw,
    conditional: bool,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let operation = format!("{name} = {name} + {}", text::text(raw));
    let spec = ColumnSpec::of_column(table, column);
    let mut term = || Term::prepare(raw, &table.keyspace, &spec, scope);
    match ty {
        CqlType::Counter => Ok(Action::Increment(term()?)),
        CqlType::Tuple(_) | CqlType::Udt { .. } => refuse_operation(&operation, "tuple", column),
        CqlType::Text | CqlType::Ascii if conditional => Ok(Action::AddToValue(term()?)),
        ty if conditional && is_number(ty) => Ok(Action::AddToValue(term()?)),
        _ if conditional && !ty.is_collection() => refuse(format!(
            "Invalid operation ({operation}) for non-numeric and non-text type {name}"
        )),
        _ if !ty.is_collection() => refuse_operation(&operation, "non counter", column),
        _ if !ty.is_multicell() => refuse_operation(&operation, "frozen collection", column),
        CqlType::List { .. } => Ok(Action::Append(term()?)),
        CqlType::Map { .. } => match term() {
            Ok(term) => Ok(Action::Add(term)),
            Err(_) => refuse(format!(
                "Value for a map addition has to be a map, but was: '{}'",
                text::text(raw)
            )),
        },
        _ => Ok(Action::Add(term()?)),
    }
}

fn subtract(
    column: &Column,
    raw: &Raw,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let operation = format!("{name} = {name} - {}", text::text(raw));
    let spec = ColumnSpec::of_column(table, column);
    let keyspace = &table.keyspace;
    match ty {
        CqlType::Counter => Ok(Action::Decrement(Term::prepare(raw, keyspace, &spec, scope)?)),
        _ if !ty.is_collection() => refuse_operation(&operation, "non counter", column),
        _ if !ty.is_multicell() => refuse_operation(&operation, "frozen collection", column),
        CqlType::Map { key, .. } => {
            let keys = CqlType::Set { element: Arc::clone(key), frozen: false };
            match Term::prepare(raw, keyspace, &spec.derive(name, keys), scope) {
                Ok(term) => Ok(Action::Remove(term)),
                Err(_) => refuse(format!(
                    "Value for a map substraction has to be a set, but was: '{}'",
                    text::text(raw)
                )),
            }
        }
        CqlType::List { .. } => {
            Ok(Action::RemoveValues(Term::prepare(raw, keyspace, &spec, scope)?))
        }
        _ => Ok(Action::Remove(Term::prepare(raw, keyspace, &spec, scope)?)),
    }
}

fn prepend(
    column: &Column,
    raw: &Raw,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let spec = ColumnSpec::of_column(table, column);
    let term = Term::prepare(raw, &table.keyspace, &spec, scope)?;
    // Cassandra's message has a minus here.
    let operation = format!("{name} = {} - {name}", text::text(raw));
    match ty {
        CqlType::List { frozen: false, .. } => Ok(Action::Prepend(term)),
        CqlType::List { .. } => refuse_operation(&operation, "frozen list", column),
        _ => refuse_operation(&operation, "non list", column),
    }
}

fn set_element(
    column: &Column,
    key: &Raw,
    raw: &Raw,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let ty = &column.ty;
    let operation = format!("{}[{}] = {}", column.name, text::text(key), text::text(raw));
    let spec = ColumnSpec::of_column(table, column);
    let keyspace = &table.keyspace;
    match ty {
        _ if !ty.is_collection() => refuse_operation(&operation, "non collection", column),
        _ if !ty.is_multicell() => refuse_operation(&operation, "frozen collection", column),
        CqlType::List { element, .. } => {
            let index = Term::prepare(key, keyspace, &part::index(&spec), scope)?;
            let value = Term::prepare(raw, keyspace, &part::value(&spec, element), scope)?;
            Ok(Action::SetIndex(index, value))
        }
        CqlType::Map { key: key_type, value, .. } => {
            let key = Term::prepare(key, keyspace, &part::key(&spec, key_type), scope)?;
            let value = Term::prepare(raw, keyspace, &part::value(&spec, value), scope)?;
            Ok(Action::Put(key, value))
        }
        _ => refuse_operation(&operation, "set", column),
    }
}

/// The position and type of a field of a user type.
pub(super) fn find_field<'t>(ty: &'t CqlType, field: &str) -> Option<(u16, &'t CqlType)> {
    let CqlType::Udt { definition, .. } = ty else { return None };
    let at = definition.fields.iter().position(|(name, _)| name == field)?;
    Some((u16::try_from(at).ok()?, definition.fields.get(at).map(|(_, ty)| ty)?))
}

fn set_field(
    column: &Column,
    field: &str,
    raw: &Raw,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let name = &column.name;
    let operation = format!("{name}.{field} = {}", text::text(raw));
    match &column.ty {
        CqlType::Udt { frozen: false, .. } => {}
        CqlType::Udt { .. } => return refuse_operation(&operation, "frozen UDT", column),
        _ => return refuse_operation(&operation, "non-UDT", column),
    }
    let Some((at, ty)) = find_field(&column.ty, field) else {
        return refuse(format!("UDT column {name} does not have a field named {field}"));
    };
    let spec = part::field(&ColumnSpec::of_column(table, column), field, ty);
    Ok(Action::SetField(at, Term::prepare(raw, &table.keyspace, &spec, scope)?))
}

fn delete_element(
    column: &Column,
    raw: &Raw,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Action, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let spec = ColumnSpec::of_column(table, column);
    let mut term = |spec: ColumnSpec| Term::prepare(raw, &table.keyspace, &spec, scope);
    match ty {
        _ if !ty.is_collection() => {
            refuse(format!("Invalid deletion operation for non collection column {name}"))
        }
        _ if !ty.is_multicell() => {
            refuse(format!("Invalid deletion operation for frozen collection column {name}"))
        }
        CqlType::List { .. } => Ok(Action::DeleteIndex(term(part::index(&spec))?)),
        CqlType::Set { element, .. } => {
            Ok(Action::DeleteElement(term(part::value(&spec, element))?))
        }
        CqlType::Map { key, .. } => Ok(Action::DeleteElement(term(part::key(&spec, key))?)),
        _ => refuse(format!("Invalid deletion operation for non collection column {name}")),
    }
}

fn delete_field(column: &Column, field: &str) -> Result<Action, CqlError> {
    let name = &column.name;
    match &column.ty {
        CqlType::Udt { frozen: false, .. } => {}
        CqlType::Udt { .. } => {
            return refuse(format!("Frozen UDT column {name} does not support field deletions"));
        }
        _ => {
            return refuse(format!("Invalid field deletion operation for non-UDT column {name}"));
        }
    }
    match find_field(&column.ty, field) {
        Some((at, _)) => Ok(Action::DeleteField(at)),
        None => refuse(format!("UDT column {name} does not have a field named {field}")),
    }
}
