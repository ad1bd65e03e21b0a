//! The SELECT clause: from what is written to what is computed of each row.
//!
//! As in Cassandra it is understood in two steps, between which the WHERE clause is checked: names and
//! functions first ([`Selected::resolve`]), types and terms after ([`Build::output`]).

use std::sync::Arc;

use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::ast::{self, CellMeta, QualifiedName, Selectable, Selectors, Term as Raw};
use crate::error::CqlError;
use crate::prepared::ResultColumn;
use crate::scope::{ColumnSpec, Scope};
use crate::select::expr::{Expr, Part, Place};
use crate::term::assign::{self, Assignment};
use crate::term::function::{self, Argument, Function};
use crate::term::text::{text, tuple_text, type_text};
use crate::term::{Term, part, raw_type};

/// Something selected, its names and functions known.
pub(super) enum Selected<'r> {
    Column(Place, Arc<str>, CqlType),
    Term(Raw),
    CountRows,
    Count(Box<Selected<'r>>),
    Meta(CellMeta, Place, bool, Arc<str>, Box<Selected<'r>>),
    Call(Function, Vec<Selected<'r>>),
    Field(Box<Selected<'r>>, &'r str),
    Element(Box<Selected<'r>>, &'r Raw),
    Slice(Box<Selected<'r>>, Option<&'r Raw>, Option<&'r Raw>),
    Hint(String, CqlType, Box<Selected<'r>>),
    Tuple(Vec<Selected<'r>>),
    List(Vec<Selected<'r>>),
    Set(Vec<Selected<'r>>),
}

impl<'r> Selected<'r> {
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
            Selectable::CountRows => Self::CountRows,
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
                Self::Hint(type_text(hint), ty, inner)
            }
            Selectable::Tuple(items) => Self::Tuple(many(items)?),
            Selectable::List(items) => Self::List(many(items)?),
            Selectable::Set(items) => Self::Set(many(items)?),
            Selectable::Map(entries) => {
                for (key, value) in entries {
                    one(key).and(one(value))?;
                }
                return Err(CqlError::unsupported("A map or user type in a selection"));
            }
            Selectable::Cast(inner, _) => {
                one(inner)?;
                return Err(CqlError::unsupported("CAST"));
            }
            Selectable::Binary(_, left, right) => {
                one(left).and(one(right))?;
                return Err(CqlError::unsupported("Arithmetic"));
            }
            Selectable::Negate(inner) => {
                one(inner)?;
                return Err(CqlError::unsupported("Arithmetic"));
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
        if native && name.name == "count" {
            return match (arguments.len(), arguments.pop()) {
                (1, Some(Self::Term(Raw::Literal(_)))) => Ok(Self::CountRows),
                (1, Some(argument)) => Ok(Self::Count(Box::new(argument))),
                (given, _) => Err(CqlError::invalid(format!(
                    "Invalid number of arguments in call to function system.count: 1 required but {given} provided"
                ))),
            };
        }
        let resolved = {
            let arguments: Vec<Testable<'_, '_, '_>> = arguments
                .iter()
                .map(|selected| Testable { selected, keyspace: &table.keyspace, scope })
                .collect();
            let arguments: Vec<&dyn Argument> = arguments.iter().map(|a| a as _).collect();
            function::resolve(name, &arguments, None, Some(table))?
        };
        match resolved {
            Some(function) => Ok(Self::Call(function, arguments)),
            None => Err(unknown_function(name, native, table, scope)),
        }
    }

    /// The type, where it needs no receiver.
    fn exact_type(&self) -> Option<CqlType> {
        match self {
            Self::Column(_, _, ty) | Self::Hint(_, ty, _) => Some(ty.clone()),
            // Constants fit several types, so none is theirs.
            Self::Term(_) => None,
            Self::CountRows | Self::Count(_) => Some(CqlType::BigInt),
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
    fn text(&self) -> String {
        let join = |items: &[Self]| items.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Column(_, name, _) => name.to_string(),
            Self::Term(raw) => text(raw),
            Self::CountRows => "count".to_owned(),
            Self::Count(inner) => format!("system.count({})", inner.text()),
            Self::Meta(kind, _, _, _, inner) => format!("{}({})", meta_name(*kind), inner.text()),
            Self::Call(function, arguments) => {
                format!("system.{}({})", function.name(), join(arguments))
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
        }
    }

    /// Does it touch a column that satisfies `test`?
    pub(super) fn touches(&self, test: &impl Fn(ColumnKind) -> bool) -> bool {
        let any = |items: &[Self]| items.iter().any(|item| item.touches(test));
        match self {
            Self::Column(place, ..) => test(place.kind),
            Self::Term(_) | Self::CountRows => false,
            Self::Count(inner)
            | Self::Meta(.., inner)
            | Self::Field(inner, _)
            | Self::Element(inner, _)
            | Self::Slice(inner, ..)
            | Self::Hint(_, _, inner) => inner.touches(test),
            Self::Call(_, items) | Self::Tuple(items) | Self::List(items) | Self::Set(items) => {
                any(items)
            }
        }
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

fn unknown_function(
    name: &QualifiedName,
    native: bool,
    table: &Table,
    scope: &Scope<'_>,
) -> CqlError {
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
    if native && function::NOT_YET.contains(&name.name.as_str()) {
        return CqlError::unsupported(format_args!("Function {}", name.name));
    }
    CqlError::invalid(format!("Unknown function '{shown}'"))
}

/// Something selected as an argument of a function.
struct Testable<'s, 'r, 'a> {
    selected: &'s Selected<'r>,
    keyspace: &'s str,
    scope: &'s Scope<'a>,
}

impl Testable<'_, '_, '_> {
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
                    (CqlType::List { element, .. }, Selected::List(_)) => element,
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
            Selected::Term(raw) => function::known_type(raw, self.keyspace, self.scope),
            Selected::Tuple(items) if items.len() > 1 => {
                let types = items.iter().map(|item| self.on(item).known_type());
                Some(CqlType::Tuple(types.collect::<Option<Vec<_>>>()?.into()))
            }
            Selected::List(items) => {
                let types = items.iter().filter_map(|item| self.on(item).known_type());
                function::list_of(&types.collect::<Vec<_>>())
            }
            other => other.exact_type(),
        }
    }
}

pub(super) fn meta_name(kind: CellMeta) -> &'static str {
    match kind {
        CellMeta::Writetime => "writetime",
        CellMeta::MaxWritetime => "maxwritetime",
        CellMeta::Ttl => "ttl",
    }
}

fn meta_type(kind: CellMeta, multi: bool) -> CqlType {
    let one = if kind == CellMeta::Ttl { CqlType::Int } else { CqlType::BigInt };
    match kind {
        CellMeta::Writetime | CellMeta::Ttl if multi => {
            CqlType::List { element: one.into(), frozen: true }
        }
        _ => one,
    }
}

/// The type of what `[key]` selects.
fn element_type(ty: &CqlType) -> Option<CqlType> {
    match ty {
        CqlType::Map { value, .. } => Some((**value).clone()),
        CqlType::Set { element, .. } | CqlType::List { element, .. } => Some((**element).clone()),
        _ => None,
    }
}

/// What is computed, under which name and of which type.
pub(super) struct Node {
    pub expr: Expr,
    pub name: String,
    pub ty: CqlType,
}

/// Builds what is computed, and gathers the terms and columns in it.
pub(super) struct Build<'b, 's> {
    pub table: &'b Table,
    pub scope: &'b mut Scope<'s>,
    /// Terms to be bound once a request.
    pub terms: Vec<Term>,
    /// Columns in the order in which they are met, each once.
    pub columns: Vec<Place>,
    /// Is there an aggregate?
    pub aggregates: bool,
}

impl Build<'_, '_> {
    /// A column of the result.
    pub(super) fn output(
        &mut self,
        selected: &Selected<'_>,
        alias: Option<&str>,
    ) -> Result<(Expr, ResultColumn), CqlError> {
        let node = self.node(selected, None)?;
        let column = ResultColumn {
            keyspace: self.table.keyspace.as_str().into(),
            table: self.table.name.as_str().into(),
            name: alias.unwrap_or(&node.name).into(),
            ty: node.ty,
        };
        Ok((node.expr, column))
    }

    fn touch(&mut self, place: Place) {
        if !self.columns.contains(&place) {
            self.columns.push(place);
        }
    }

    fn term(&mut self, term: Term) -> usize {
        self.terms.push(term);
        self.terms.len() - 1
    }

    fn spec(&self, name: &str, ty: &CqlType) -> ColumnSpec {
        ColumnSpec::new(&self.table.keyspace, &self.table.name, name, ty.clone())
    }

    fn node(
        &mut self,
        selected: &Selected<'_>,
        expected: Option<&CqlType>,
    ) -> Result<Node, CqlError> {
        match selected {
            Selected::Column(place, name, ty) => {
                self.touch(*place);
                Ok(Node { expr: Expr::Column(*place), name: name.to_string(), ty: ty.clone() })
            }
            Selected::Term(raw) => self.term_node(raw, expected),
            Selected::CountRows => {
                self.aggregates = true;
                let expr = Expr::Count(None);
                Ok(Node { expr, name: "count".to_owned(), ty: CqlType::BigInt })
            }
            Selected::Count(inner) => {
                self.aggregates = false;
                // Anything can be counted, a marker as bytes.
                let inner = self.node(inner, Some(&CqlType::Blob))?;
                if self.aggregates {
                    return Err(CqlError::invalid(
                        "aggregate functions cannot be used as arguments of aggregate functions",
                    ));
                }
                self.aggregates = true;
                let name = format!("system.count({})", inner.name);
                Ok(Node {
                    expr: Expr::Count(Some(Box::new(inner.expr))),
                    name,
                    ty: CqlType::BigInt,
                })
            }
            Selected::Meta(kind, place, is_key, name, inner) => {
                self.meta_node(*kind, *place, *is_key, name, inner)
            }
            Selected::Call(function, arguments) => self.call_node(function, arguments),
            Selected::Field(inner, field) => self.field_node(inner, field),
            Selected::Element(inner, key) => self.element_node(selected, inner, key),
            Selected::Slice(inner, from, to) => self.slice_node(selected, inner, *from, *to),
            Selected::Hint(hint, ty, inner) => {
                let shown = selected.text();
                let spec = self.spec(&shown, ty);
                let test =
                    Testable { selected: inner, keyspace: &self.table.keyspace, scope: self.scope };
                if !test.test(&spec)?.is_assignable() {
                    return Err(CqlError::invalid(format!(
                        "Cannot assign value {shown} to {shown} of type {ty}"
                    )));
                }
                let inner = self.node(inner, Some(ty))?;
                let name = format!("({hint}){}", inner.name);
                Ok(Node { expr: inner.expr, name, ty: ty.clone() })
            }
            Selected::Tuple(items) => self.tuple_node(selected, items, expected),
            Selected::List(items) | Selected::Set(items) => {
                self.collection_node(selected, items, expected)
            }
        }
    }

    fn cannot_infer(shown: String) -> CqlError {
        CqlError::invalid(format!(
            "Cannot infer type for term {shown} in selection clause (try using a cast to force a type)"
        ))
    }

    fn term_node(&mut self, raw: &Raw, expected: Option<&CqlType>) -> Result<Node, CqlError> {
        let ty = expected.cloned().ok_or_else(|| Self::cannot_infer(text(raw)))?;
        let spec = self.spec("[selection]", &ty);
        let term = Term::prepare(raw, &self.table.keyspace, &spec, self.scope)?;
        Ok(Node { expr: Expr::Term(self.term(term)), name: text(raw), ty })
    }

    fn meta_node(
        &mut self,
        kind: CellMeta,
        place: Place,
        is_key: bool,
        column: &str,
        inner: &Selected<'_>,
    ) -> Result<Node, CqlError> {
        let shown = meta_name(kind);
        if is_key {
            return Err(CqlError::invalid(format!(
                "Cannot use selection function {shown} on PRIMARY KEY part {column}"
            )));
        }
        let inner = self.node(inner, None)?;
        self.touch(place);
        let ty = meta_type(kind, inner.ty.is_multicell());
        let name = format!("{shown}({})", inner.name);
        Ok(Node { expr: Expr::Meta(kind, Box::new(inner.expr)), name, ty })
    }

    fn call_node(
        &mut self,
        function: &Function,
        arguments: &[Selected<'_>],
    ) -> Result<Node, CqlError> {
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for (argument, ty) in arguments.iter().zip(function.arguments()) {
            let node = self.node(argument, Some(ty))?;
            exprs.push(node.expr);
            names.push(node.name);
        }
        let name = format!("system.{}({})", function.name(), names.join(", "));
        let ty = function.returns().clone();
        Ok(Node { expr: Expr::Call(Box::new(function.clone()), exprs), name, ty })
    }

    fn field_node(&mut self, inner: &Selected<'_>, field: &str) -> Result<Node, CqlError> {
        let shown = inner.text();
        let expected = match inner {
            Selected::Tuple(items) => items.first().and_then(Selected::exact_type),
            _ => None,
        };
        let inner = self.node(inner, expected.as_ref())?;
        let CqlType::Udt { definition, .. } = &inner.ty else {
            return Err(CqlError::invalid(format!(
                "Invalid field selection: {shown} of type {} is not a user type",
                inner.ty
            )));
        };
        let Some(index) = definition.fields.iter().position(|(name, _)| name == field) else {
            return Err(CqlError::invalid(format!(
                "{shown} of type {} has no field {field}",
                inner.ty
            )));
        };
        let ty = definition.fields.get(index).map_or(CqlType::Blob, |(_, ty)| ty.clone());
        let name = format!("{}.{field}", inner.name);
        Ok(Node { expr: Expr::Part(Box::new(inner.expr), Part::Field(index)), name, ty })
    }

    /// What receives the key of an element, or an end of a slice.
    fn key_spec(&self, shown: &str, node: &Node, what: &str) -> Result<ColumnSpec, CqlError> {
        let spec = self.spec(&node.name, &node.ty);
        match &node.ty {
            CqlType::Set { element, .. } => Ok(part::value(&spec, element)),
            CqlType::Map { key, .. } => Ok(part::key(&spec, key)),
            CqlType::List { .. } => Err(CqlError::invalid(format!(
                "{what} selection is only allowed on sets and maps, but {shown} is a list"
            ))),
            other if what == "Element" => Err(CqlError::invalid(format!(
                "Invalid element selection: {shown} is of type {other} is not a collection"
            ))),
            other => Err(CqlError::invalid(format!(
                "Invalid slice selection: {shown} of type {other} is not a collection"
            ))),
        }
    }

    fn element_node(
        &mut self,
        selected: &Selected<'_>,
        inner: &Selected<'_>,
        key: &Raw,
    ) -> Result<Node, CqlError> {
        let shown = inner.text();
        let inner = self.node(inner, None)?;
        let spec = self.key_spec(&shown, &inner, "Element")?;
        let term = Term::prepare(key, &self.table.keyspace, &spec, self.scope)?;
        let part = Part::Element {
            key: self.term(term),
            key_type: spec.ty,
            is_map: matches!(inner.ty, CqlType::Map { .. }),
        };
        let ty = element_type(&inner.ty).unwrap_or(CqlType::Blob);
        Ok(Node { expr: Expr::Part(Box::new(inner.expr), part), name: selected.text(), ty })
    }

    fn slice_node(
        &mut self,
        selected: &Selected<'_>,
        inner: &Selected<'_>,
        from: Option<&Raw>,
        to: Option<&Raw>,
    ) -> Result<Node, CqlError> {
        let shown = inner.text();
        let inner = self.node(inner, None)?;
        let spec = self.key_spec(&shown, &inner, "Slice")?;
        let mut end = |raw: Option<&Raw>| -> Result<Option<usize>, CqlError> {
            let Some(raw) = raw else { return Ok(None) };
            let term = Term::prepare(raw, &self.table.keyspace, &spec, self.scope)?;
            self.terms.push(term);
            Ok(Some(self.terms.len() - 1))
        };
        let (from, to) = (end(from)?, end(to)?);
        let part = Part::Slice {
            from,
            to,
            key_type: spec.ty,
            is_map: matches!(inner.ty, CqlType::Map { .. }),
            frozen: !inner.ty.is_multicell(),
        };
        let ty = inner.ty.clone();
        Ok(Node { expr: Expr::Part(Box::new(inner.expr), part), name: selected.text(), ty })
    }

    fn tuple_node(
        &mut self,
        selected: &Selected<'_>,
        items: &[Selected<'_>],
        expected: Option<&CqlType>,
    ) -> Result<Node, CqlError> {
        let ty = selected.exact_type().or_else(|| expected.cloned());
        let ty = match (ty, items) {
            (Some(ty), _) => ty,
            // A parenthesis has the type of what is in it, which Cassandra does not look for.
            (None, _) => return Err(Self::cannot_infer(selected.text())),
        };
        let types: Option<Vec<CqlType>> =
            part::tuple_types(&ty).map(|types| types.into_iter().cloned().collect());
        let Some(types) = types else {
            let [one] = items else { return Err(Self::cannot_infer(selected.text())) };
            let inner = self.node(one, Some(&ty))?;
            let name = format!("({})", inner.name);
            return Ok(Node { expr: inner.expr, name, ty: inner.ty });
        };
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for (item, ty) in items.iter().zip(&types) {
            let node = self.node(item, Some(ty))?;
            exprs.push(node.expr);
            names.push(node.name);
        }
        Ok(Node { expr: Expr::Tuple(exprs), name: tuple_text(names), ty })
    }

    fn collection_node(
        &mut self,
        selected: &Selected<'_>,
        items: &[Selected<'_>],
        expected: Option<&CqlType>,
    ) -> Result<Node, CqlError> {
        let ty = selected.exact_type().or_else(|| expected.cloned());
        let ty = ty.ok_or_else(|| Self::cannot_infer(selected.text()))?;
        let (element, set) = match (&ty, selected) {
            // `{}` is a map too.
            (CqlType::Map { key, .. }, Selected::Set(items)) if items.is_empty() => (key, true),
            (CqlType::List { element, .. }, Selected::List(_)) => (element, false),
            (CqlType::Set { element, .. }, Selected::Set(_)) => (element, true),
            _ => return Err(CqlError::unsupported("A map or vector in a selection")),
        };
        if set && **element == CqlType::Duration {
            return Err(CqlError::invalid(format!("Durations are not allowed inside sets: {ty}")));
        }
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for item in items {
            let node = self.node(item, Some(element))?;
            exprs.push(node.expr);
            names.push(node.name);
        }
        let names = names.join(", ");
        let name = if set { format!("{{{names}}}") } else { format!("[{names}]") };
        let sorted_by = set.then(|| (**element).clone());
        Ok(Node { expr: Expr::Elements { exprs, sorted_by }, name, ty })
    }
}

/// Everything in a table, in the order of `SELECT *`.
pub(super) fn all_columns(table: &Table) -> Vec<(Selected<'static>, Option<&'static str>)> {
    table.all_columns_in_select_order().map(|column| (Selected::column(column), None)).collect()
}

/// Are only partition key and static columns selected, static ones among them?
pub(super) fn only_statics(table: &Table, selected: &[(Selected<'_>, Option<&str>)]) -> bool {
    let any = |test: fn(ColumnKind) -> bool| selected.iter().any(|(s, _)| s.touches(&test));
    !table.statics.is_empty()
        && any(|kind| kind == ColumnKind::Static)
        && !any(|kind| !matches!(kind, ColumnKind::PartitionKey | ColumnKind::Static))
}

/// ORDER BY and GROUP BY name columns; JSON and groups wait for another day.
pub(super) fn refuse_unserved(select: &ast::Select) -> Result<(), CqlError> {
    if select.json {
        return Err(CqlError::unsupported("SELECT JSON"));
    }
    if !select.group_by.is_empty() {
        return Err(CqlError::unsupported("GROUP BY"));
    }
    Ok(())
}
