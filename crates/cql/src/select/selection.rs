//! The SELECT clause: from what is written to what is computed of each row.
//!
//! As in Cassandra it is understood in two steps, between which the WHERE clause is checked: names
//! and functions first ([`Selected::resolve`]), types and terms after
//! ([`super::build::Build::output`]).

use std::sync::Arc;

use schema::{Column, ColumnKind, Table};
use types::{CqlType, UserType};

use crate::ast::{
    CellMeta, NativeType, QualifiedName, RawType, Selectable, Selectors, Term as Raw,
};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::select::row::Place;
use crate::term::assign::{self, call};
use crate::term::assignment::Assignment;
use crate::term::function::{self, Argument, Function};
use crate::term::text::{text, tuple_text, type_text};
use crate::term::{part, raw_type};

/// Something selected, its names and functions known.
pub(super) enum Selected<'r> {
    Column(Place, Arc<str>, CqlType),
    Term(Raw),
    Meta(CellMeta, Place, bool, Arc<str>, Box<Selected<'r>>),
    Call(Function, Vec<Selected<'r>>),
    Field(Box<Selected<'r>>, &'r str),
    Element(Box<Selected<'r>>, &'r Raw),
    Slice(Box<Selected<'r>>, Option<&'r Raw>, Option<&'r Raw>),
    Hint(String, CqlType, Box<Selected<'r>>),
    Cast(Box<Selected<'r>>, NativeType),
    Tuple(Vec<Selected<'r>>),
    List(Vec<Selected<'r>>),
    Set(Vec<Selected<'r>>),
    /// A map, or the fields of a user type.
    Braces(Vec<Member<'r>>),
}

/// A key and a value in braces.
pub(super) struct Member<'r> {
    /// The name that a field of a user type would have.
    pub field: Option<&'r str>,
    /// The key of a map, or why it can be none.
    pub key: Result<Selected<'r>, CqlError>,
    pub value: Selected<'r>,
}

impl<'r> Selected<'r> {
    /// The elements of GROUP BY.
    pub(super) fn groups(
        groups: &'r [Selectable],
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<Vec<Self>, CqlError> {
        groups.iter().map(|group| Self::resolve(group, table, scope)).collect()
    }

    /// Everything selected, with the aliases; nothing for `*`.
    pub(super) fn all(
        selectors: &'r Selectors,
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<Vec<(Self, Option<&'r str>)>, CqlError> {
        let Selectors::List(list) = selectors else { return Ok(Vec::new()) };
        list.iter()
            .map(|s| Ok((Self::resolve(&s.expression, table, scope)?, s.alias.as_deref())))
            .collect()
    }

    fn resolve(raw: &'r Selectable, table: &Table, scope: &Scope<'_>) -> Result<Self, CqlError> {
        let one = |raw| Self::resolve(raw, table, scope).map(Box::new);
        let many = |items: &'r [Selectable]| {
            items
                .iter()
                .map(|item| Self::resolve(item, table, scope))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match raw {
            Selectable::Column(name) => Self::column(Scope::column(table, name)?),
            Selectable::Literal(literal) => Self::Term(Raw::Literal(literal.clone())),
            Selectable::Null => Self::Term(Raw::Null),
            Selectable::Marker(marker) => Self::Term(Raw::Marker(*marker)),
            Selectable::CountRows => Self::call(&native("count_rows"), Vec::new(), table, scope)?,
            Selectable::CellMeta(kind, inner) => {
                let column = Scope::column(table, innermost(inner))?;
                let is_key = column.kind.is_primary_key();
                Self::Meta(*kind, Place::of(column), is_key, column.name.clone(), one(inner)?)
            }
            Selectable::Function(name, arguments) => {
                Self::call(name, many(arguments)?, table, scope)?
            }
            Selectable::Field(inner, field) => Self::Field(one(inner)?, field),
            Selectable::Element(inner, key) => Self::Element(one(inner)?, key),
            Selectable::Slice(inner, from, to) => {
                Self::Slice(one(inner)?, from.as_ref(), to.as_ref())
            }
            Selectable::TypeHint(hint, inner) => {
                let inner = one(inner)?;
                let ty = raw_type::resolve(hint, &table.keyspace, scope)?.freeze();
                Self::Hint(type_text(&qualified(hint, &table.keyspace)), ty, inner)
            }
            Selectable::Tuple(items) => Self::Tuple(many(items)?),
            Selectable::List(items) => Self::List(many(items)?),
            Selectable::Set(items) => Self::Set(many(items)?),
            Selectable::Map(entries) => {
                let member = |(key, value): &'r (Selectable, Selectable)| {
                    let field = match key {
                        Selectable::Column(name) => Some(name.as_str()),
                        _ => None,
                    };
                    let key = Self::resolve(key, table, scope);
                    Ok(Member { field, key, value: Self::resolve(value, table, scope)? })
                };
                Self::Braces(entries.iter().map(member).collect::<Result<_, CqlError>>()?)
            }
            Selectable::Cast(inner, target) => Self::Cast(one(inner)?, *target),
            Selectable::Binary(operator, left, right) => {
                let name = native(function::operator_name(*operator));
                Self::call(&name, vec![*one(left)?, *one(right)?], table, scope)?
            }
            Selectable::Negate(inner) => {
                Self::call(&native(function::NEGATE), vec![*one(inner)?], table, scope)?
            }
        })
    }

    /// A column as a whole.
    pub(super) fn column(column: &Column) -> Self {
        Self::Column(Place::of(column), Arc::clone(&column.name), column.ty.clone())
    }

    fn call(
        name: &QualifiedName,
        mut arguments: Vec<Self>,
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<Self, CqlError> {
        let native = name.keyspace.as_deref().is_none_or(|keyspace| keyspace == "system");
        // A constant is there in every row.
        if native
            && name.name == "count"
            && matches!(arguments.as_slice(), [Self::Term(Raw::Literal(_))])
        {
            arguments.clear();
            return Self::call(&self::native("count_rows"), arguments, table, scope);
        }
        let resolved = {
            let arguments: Vec<Testable<'_, '_, '_>> = arguments
                .iter()
                .map(|selected| Testable { selected, keyspace: &table.keyspace, scope })
                .collect();
            let arguments: Vec<&dyn Argument> = arguments.iter().map(|a| a as _).collect();
            function::resolve(name, &arguments, None, Some(table), scope.schema.release())?
        };
        match resolved {
            Some(function) => Ok(Self::Call(function, arguments)),
            None => Err(unknown_function(name, table, scope)),
        }
    }

    /// The type, where it needs no receiver.
    pub(super) fn exact_type(&self) -> Option<CqlType> {
        match self {
            Self::Column(_, _, ty) | Self::Hint(_, ty, _) => Some(ty.clone()),
            // Constants fit several types, so none is theirs.
            Self::Term(_) | Self::Braces(_) => None,
            Self::Cast(_, target) => Some(target.cql_type()),
            Self::Meta(kind, _, _, _, inner) => {
                let multi = inner.exact_type().is_some_and(|ty| ty.is_multicell());
                Some(meta_type(*kind, multi))
            }
            Self::Call(function, _) => Some(function.returns().clone()),
            Self::Field(inner, field) => match inner.exact_type()? {
                CqlType::Udt { definition, .. } => {
                    let found = definition.fields.iter().find(|(name, _)| name == field);
                    found.map(|(_, ty)| ty.clone())
                }
                _ => None,
            },
            Self::Element(inner, _) => element_type(&inner.exact_type()?),
            Self::Slice(inner, ..) => inner.exact_type().filter(CqlType::is_collection),
            Self::Tuple(items) if items.len() == 1 => None,
            Self::Tuple(items) => {
                let types = items.iter().map(Self::exact_type).collect::<Option<Vec<_>>>()?;
                Some(CqlType::Tuple(types.into()))
            }
            Self::List(items) => {
                let element = items.iter().find_map(Self::exact_type)?.into();
                Some(CqlType::List { element, frozen: true })
            }
            Self::Set(items) => {
                let element = items.iter().find_map(Self::exact_type)?.into();
                Some(CqlType::Set { element, frozen: true })
            }
        }
    }

    /// As error messages show it.
    pub(super) fn text(&self) -> String {
        let join = |items: &[Self]| items.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Column(_, name, _) => name.to_string(),
            Self::Term(raw) => text(raw),
            Self::Cast(inner, target) => format!("cast({} as {})", inner.text(), target.name()),
            Self::Meta(kind, _, _, _, inner) => format!("{}({})", meta_name(*kind), inner.text()),
            Self::Call(function, arguments) => {
                function.text(&arguments.iter().map(Self::text).collect::<Vec<_>>())
            }
            Self::Field(inner, field) => format!("{}.{field}", inner.text()),
            Self::Element(inner, key) => format!("{}[{}]", inner.text(), text(key)),
            Self::Slice(inner, from, to) => {
                let end = |end: &Option<&Raw>| end.map(text).unwrap_or_default();
                format!("{}[{}..{}]", inner.text(), end(from), end(to))
            }
            Self::Hint(hint, _, inner) => format!("({hint}){}", inner.text()),
            Self::Tuple(items) => tuple_text(items.iter().map(Self::text)),
            Self::List(items) => format!("[{}]", join(items)),
            Self::Set(items) => format!("{{{}}}", join(items)),
            Self::Braces(members) => {
                let one = |member: &Member<'_>| {
                    let key = match (member.field, &member.key) {
                        (None, Ok(key)) => key.text(),
                        (field, _) => field.unwrap_or_default().to_owned(),
                    };
                    format!("{key}: {}", member.value.text())
                };
                format!("{{{}}}", members.iter().map(one).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// Does it touch a column that satisfies `test`?
    pub(super) fn touches(&self, test: &impl Fn(ColumnKind) -> bool) -> bool {
        let any = |items: &[Self]| items.iter().any(|item| item.touches(test));
        match self {
            Self::Column(place, ..) => test(place.kind),
            Self::Term(_) => false,
            Self::Cast(inner, _)
            | Self::Meta(.., inner)
            | Self::Field(inner, _)
            | Self::Element(inner, _)
            | Self::Slice(inner, ..)
            | Self::Hint(_, _, inner) => inner.touches(test),
            Self::Call(_, items) | Self::Tuple(items) | Self::List(items) | Self::Set(items) => {
                any(items)
            }
            Self::Braces(members) => members.iter().any(|member| {
                let key = member.key.as_ref().is_ok_and(|key| key.touches(test));
                member.value.touches(test) || key
            }),
        }
    }
}

/// The field of a user type that a member in braces is, by place and type.
pub(super) fn field_of<'d>(
    member: &Member<'_>,
    definition: &'d UserType,
) -> Result<(usize, &'d CqlType), CqlError> {
    let Some(field) = member.field else {
        let key = member.key.as_ref().map(Selected::text).unwrap_or_default();
        return Err(CqlError::invalid(format!(
            "{key} is not a valid field identifier of type {} ",
            definition.name
        )));
    };
    let found = definition.fields.iter().position(|(name, _)| name == field);
    let found = found.and_then(|at| Some((at, &definition.fields.get(at)?.1)));
    found.ok_or_else(|| {
        CqlError::invalid(format!(
            "Unknown field '{field}' in value of user defined type {}",
            definition.name
        ))
    })
}

/// A type as written, user types with their keyspace.
fn qualified(ty: &RawType, keyspace: &str) -> RawType {
    let inner = |ty: &RawType| Box::new(qualified(ty, keyspace));
    match ty {
        RawType::List(element) => RawType::List(inner(element)),
        RawType::Set(element) => RawType::Set(inner(element)),
        RawType::Map(key, value) => RawType::Map(inner(key), inner(value)),
        RawType::Tuple(types) => {
            RawType::Tuple(types.iter().map(|ty| qualified(ty, keyspace)).collect())
        }
        RawType::Vector(element, dimension) => RawType::Vector(inner(element), *dimension),
        RawType::Frozen(frozen) => RawType::Frozen(inner(frozen)),
        RawType::User(name) => RawType::User(QualifiedName {
            keyspace: Some(name.keyspace.as_deref().unwrap_or(keyspace).to_owned()),
            name: name.name.clone(),
        }),
        RawType::Native(_) | RawType::Custom(_) => ty.clone(),
    }
}

/// The column inside of fields, elements and slices.
fn innermost(selectable: &Selectable) -> &str {
    let mut at = selectable;
    loop {
        at = match at {
            Selectable::Column(name) => return name,
            Selectable::Field(inner, _)
            | Selectable::Element(inner, _)
            | Selectable::Slice(inner, ..) => inner,
            _ => return "",
        };
    }
}

pub(super) fn native(name: &str) -> QualifiedName {
    QualifiedName { keyspace: Some("system".to_owned()), name: name.to_owned() }
}

fn unknown_function(name: &QualifiedName, table: &Table, scope: &Scope<'_>) -> CqlError {
    let shown = match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    };
    let keyspace = name.keyspace.as_deref().unwrap_or(&table.keyspace);
    let user = scope.schema.keyspace(keyspace).is_some_and(|keyspace| {
        keyspace.functions.keys().chain(keyspace.aggregates.keys()).any(|s| s.name == name.name)
    });
    if user {
        return CqlError::unsupported("A user-defined function");
    }
    CqlError::invalid(format!("Unknown function '{shown}'"))
}

/// Something selected as an argument of a function.
pub(super) struct Testable<'s, 'r, 'a> {
    pub selected: &'s Selected<'r>,
    pub keyspace: &'s str,
    pub scope: &'s Scope<'a>,
}

impl Testable<'_, '_, '_> {
    fn test_braces(
        &self,
        members: &[Member<'_>],
        receiver: &ColumnSpec,
    ) -> Result<Assignment, CqlError> {
        let mut worst = Assignment::Exact;
        for member in members {
            match &receiver.ty {
                CqlType::Map { key, value, .. } => {
                    let given = member.key.as_ref().map_err(Clone::clone)?;
                    worst = worst.max(self.on(given).test(&part::key(receiver, key))?);
                    let value = part::value(receiver, value);
                    worst = worst.max(self.on(&member.value).test(&value)?);
                }
                CqlType::Udt { definition, .. } => {
                    let (_, ty) = field_of(member, definition)?;
                    let spec = part::field(receiver, member.field.unwrap_or_default(), ty);
                    worst = Assignment::Weak.max(worst.max(self.on(&member.value).test(&spec)?));
                }
                _ => return Ok(Assignment::None),
            }
        }
        Ok(worst)
    }

    fn on<'x>(&'x self, selected: &'x Selected<'x>) -> Testable<'x, 'x, 'x> {
        Testable { selected, keyspace: self.keyspace, scope: self.scope }
    }
}

impl Argument for Testable<'_, '_, '_> {
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError> {
        match self.selected {
            Selected::Term(raw) => assign::test(raw, self.keyspace, receiver, self.scope),
            Selected::Tuple(items) => match items.as_slice() {
                [one] if part::tuple_types(&receiver.ty).is_none() => self.on(one).test(receiver),
                _ => {
                    let Some(types) = part::tuple_types(&receiver.ty) else {
                        return Ok(Assignment::None);
                    };
                    if items.len() > types.len() {
                        return Ok(Assignment::None);
                    }
                    for (item, spec) in items.iter().zip(part::components(receiver)) {
                        if !self.on(item).test(&spec)?.is_assignable() {
                            return Ok(Assignment::None);
                        }
                    }
                    Ok(Assignment::Weak)
                }
            },
            Selected::List(items) | Selected::Set(items) => {
                let element = match (&receiver.ty, self.selected) {
                    (CqlType::Map { .. }, Selected::Set(items)) if items.is_empty() => {
                        return Ok(Assignment::Weak);
                    }
                    (CqlType::Vector { dimension, .. }, Selected::List(items))
                        if usize::try_from(*dimension) != Ok(items.len()) =>
                    {
                        return Ok(Assignment::None);
                    }
                    (
                        CqlType::List { element, .. } | CqlType::Vector { element, .. },
                        Selected::List(_),
                    ) => element,
                    (CqlType::Set { element, .. }, Selected::Set(_)) => element,
                    _ => return Ok(Assignment::None),
                };
                if items.is_empty() {
                    return Ok(Assignment::Weak);
                }
                let spec = part::value(receiver, element);
                let mut worst = Assignment::Exact;
                for item in items {
                    worst = worst.max(self.on(item).test(&spec)?);
                }
                Ok(worst)
            }
            Selected::Braces(members) => self.test_braces(members, receiver),
            other => Ok(match other.exact_type() {
                Some(ty) => Assignment::of_types(&receiver.ty, &ty),
                None => Assignment::None,
            }),
        }
    }

    fn text(&self) -> String {
        self.selected.text()
    }

    fn known_type(&self) -> Option<CqlType> {
        match self.selected {
            Selected::Term(raw) => call::known_type(raw, self.keyspace, self.scope),
            Selected::Tuple(items) if items.len() > 1 => {
                let types = items.iter().map(|item| self.on(item).known_type());
                Some(CqlType::Tuple(types.collect::<Option<Vec<_>>>()?.into()))
            }
            Selected::List(items) => {
                let types = items.iter().map(|item| self.on(item).known_type());
                let element = function::common_type(types)?.into();
                Some(CqlType::List { element, frozen: true })
            }
            other => other.exact_type(),
        }
    }

    fn array_size(&self) -> Option<u32> {
        match self.selected {
            Selected::List(items) => u32::try_from(items.len()).ok(),
            _ => None,
        }
    }

    fn is_marker(&self) -> bool {
        matches!(self.selected, Selected::Term(Raw::Marker(_)))
    }
}

pub(super) fn meta_name(kind: CellMeta) -> &'static str {
    match kind {
        CellMeta::Writetime => "writetime",
        CellMeta::MaxWritetime => "maxwritetime",
        CellMeta::Ttl => "ttl",
    }
}

pub(super) fn meta_type(kind: CellMeta, multi: bool) -> CqlType {
    let one = if kind == CellMeta::Ttl { CqlType::Int } else { CqlType::BigInt };
    match kind {
        CellMeta::Writetime | CellMeta::Ttl if multi => {
            CqlType::List { element: one.into(), frozen: true }
        }
        _ => one,
    }
}

/// The type of what `[key]` selects.
pub(super) fn element_type(ty: &CqlType) -> Option<CqlType> {
    match ty {
        CqlType::Map { value, .. } => Some((**value).clone()),
        CqlType::Set { element, .. } | CqlType::List { element, .. } => Some((**element).clone()),
        _ => None,
    }
}

/// Everything in a table, in the order of `SELECT *`.
pub(super) fn all_columns(table: &Table) -> Vec<(Selected<'static>, Option<&'static str>)> {
    table.all_columns_in_select_order().map(|column| (Selected::column(column), None)).collect()
}

/// Are only partition key and static columns selected, static ones among them, where there are rows
/// beside?
pub(super) fn only_statics(table: &Table, selected: &[(Selected<'_>, Option<&str>)]) -> bool {
    let any = |test: fn(ColumnKind) -> bool| selected.iter().any(|(s, _)| s.touches(&test));
    !table.statics.is_empty()
        && !table.is_static_compact()
        && any(|kind| kind == ColumnKind::Static)
        && !any(|kind| !matches!(kind, ColumnKind::PartitionKey | ColumnKind::Static))
}
