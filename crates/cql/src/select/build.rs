//! The SELECT clause built: what is computed of each row, under which names and of which types.

use schema::{ColumnKind, Table};
use types::CqlType;

use crate::ast::{CellMeta, NativeType, Term as Raw};
use crate::error::CqlError;
use crate::metadata::ResultColumn;
use crate::scope::{ColumnSpec, Scope};
use crate::select::aggregates::Aggregated;
use crate::select::expr::{Expr, Part};
use crate::select::group::GroupBy;
use crate::select::restrictions::Restrictions;
use crate::select::row::Place;
use crate::select::selection::{
    Member, Selected, Testable, element_type, field_of, meta_name, meta_type, native,
};
use crate::term::function::{self, Argument, Function};
use crate::term::text::{text, tuple_text};
use crate::term::{Term, part};

/// What is computed, under which name and of which type.
pub(super) struct Node {
    pub expr: Expr,
    pub name: String,
    pub ty: CqlType,
    /// Is the type that of a clustering column in descending order, or taken over from one?
    pub reversed: bool,
}

impl Node {
    fn new(expr: Expr, name: String, ty: CqlType) -> Self {
        Self { expr, name, ty, reversed: false }
    }
}

/// Builds what is computed, and gathers the terms and columns in it.
pub(super) struct Build<'b, 's> {
    pub table: &'b Table,
    pub scope: &'b mut Scope<'s>,
    /// Terms to be bound once a request.
    pub terms: Vec<Term>,
    /// Columns in the order in which they are met, each once.
    pub columns: Vec<Place>,
    /// The aggregates.
    pub aggregates: Vec<Aggregated>,
    /// Terms that are arguments of functions, with their names: none may be left unset.
    pub arguments: Vec<(usize, String)>,
}

impl Build<'_, '_> {
    /// A column of the result.
    pub(super) fn output(
        &mut self,
        selected: &Selected<'_>,
        alias: Option<&str>,
    ) -> Result<(Expr, ResultColumn), CqlError> {
        let node = self.node(selected, None)?;
        let ty = match &node.expr {
            _ if node.reversed => node.ty,
            Expr::Call(function, _) if *function.returns() == node.ty => function.shown_type(),
            Expr::Aggregate(_) => legacy_type(&node.ty),
            _ => node.ty,
        };
        let column = ResultColumn {
            keyspace: self.table.keyspace.as_str().into(),
            table: self.table.name.as_str().into(),
            name: alias.unwrap_or(&node.name).into(),
            ty,
            reversed: node.reversed && matches!(node.expr, Expr::Column(_)),
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
                let reversed = place.column(self.table).is_some_and(|column| column.reversed);
                let expr = Expr::Column(*place);
                Ok(Node { reversed, ..Node::new(expr, name.to_string(), ty.clone()) })
            }
            Selected::Term(raw) => self.term_node(raw, expected),
            Selected::Meta(kind, place, is_key, name, inner) => {
                self.meta_node(*kind, *place, *is_key, name, inner)
            }
            Selected::Call(function, arguments) => self.call_node(function, arguments),
            Selected::Cast(inner, target) => self.cast_node(inner, *target),
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
                Ok(Node::new(inner.expr, name, ty.clone()))
            }
            Selected::Tuple(items) => self.tuple_node(selected, items, expected),
            Selected::List(items) | Selected::Set(items) => {
                self.collection_node(selected, items, expected)
            }
            Selected::Braces(members) => self.braces_node(selected, members, expected),
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
        Ok(Node::new(Expr::Term(self.term(term)), text(raw), ty))
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
        Ok(Node::new(Expr::Meta(kind, Box::new(inner.expr)), name, ty))
    }

    fn call_node(
        &mut self,
        function: &Function,
        arguments: &[Selected<'_>],
    ) -> Result<Node, CqlError> {
        let before = self.aggregates.len();
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        let mut reversed = false;
        for (index, (argument, ty)) in arguments.iter().zip(function.arguments()).enumerate() {
            let node = self.node(argument, Some(ty))?;
            reversed |= index == 0 && node.reversed && function.keeps_type();
            if let Expr::Term(term) = node.expr {
                self.arguments.push((term, function.name().to_owned()));
            }
            exprs.push(node.expr);
            names.push(node.name);
        }
        let (name, ty) = (function.text(&names), function.returns().clone());
        let Some(work) = function.aggregate() else {
            let expr = Expr::Call(Box::new(function.clone()), exprs);
            return Ok(Node { reversed, ..Node::new(expr, name, ty) });
        };
        if self.aggregates.len() > before {
            return Err(CqlError::invalid(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        let argument_type = function.arguments().first().cloned().unwrap_or(CqlType::Blob);
        self.aggregates.push(Aggregated { work, ty: argument_type, argument: exprs.pop() });
        Ok(Node { reversed, ..Node::new(Expr::Aggregate(before), name, ty) })
    }

    fn cast_node(&mut self, inner: &Selected<'_>, target: NativeType) -> Result<Node, CqlError> {
        let node = self.node(inner, None)?;
        if node.ty == target.cql_type() && !node.reversed {
            return Ok(node);
        }
        let name = native(&format!("cast_as_{}", target.name()));
        let argument =
            Testable { selected: inner, keyspace: &self.table.keyspace, scope: self.scope };
        let release = self.scope.schema.release();
        let function = function::resolve(&name, &[&argument], None, Some(self.table), release)?;
        let Some(function) = function else {
            let first = self.columns.first().and_then(|place| place.column(self.table));
            return Err(CqlError::invalid(format!(
                "{} cannot be cast to {}",
                first.map_or("", |column| &column.name),
                target.name()
            )));
        };
        let (name, ty) = (function.text(&[node.name]), function.returns().clone());
        Ok(Node::new(Expr::Call(Box::new(function), vec![node.expr]), name, ty))
    }

    /// GROUP BY: names of columns of the primary key in order, the last of which may be in a
    /// function.
    pub(super) fn group_by(
        &mut self,
        groups: &[Selected<'_>],
        restrictions: &Restrictions,
        is_distinct: bool,
    ) -> Result<GroupBy, CqlError> {
        let table = self.table;
        let mut columns = table.partition_key.iter().chain(&table.clustering);
        let mut by = GroupBy { prefix: 0, function: None, refused: None };
        for selected in groups {
            let place = match selected {
                Selected::Call(function, _) => {
                    let (place, expr, ty, refused) = self.group_function(function, selected)?;
                    by.function = Some((expr, ty));
                    by.refused = refused;
                    place
                }
                Selected::Column(place, name, _) => {
                    if !place.kind.is_primary_key() {
                        return Err(CqlError::invalid(format!(
                            "Group by is currently only supported on the columns of the PRIMARY KEY, got {name}"
                        )));
                    }
                    if by.function.is_some() {
                        return Err(CqlError::invalid(
                            "Functions are only supported on the last element of the GROUP BY clause",
                        ));
                    }
                    *place
                }
                other => {
                    return Err(CqlError::invalid(format!(
                        "Group by is only supported on columns and functions of them, got {}",
                        other.text()
                    )));
                }
            };
            loop {
                let out_of_order = || {
                    CqlError::invalid(
                        "Group by currently only support groups of columns following their declared order in the PRIMARY KEY",
                    )
                };
                let column = columns.next().ok_or_else(out_of_order)?;
                by.prefix += usize::from(column.kind == ColumnKind::Clustering);
                if Place::of(column) == place {
                    break;
                }
                if !restrictions.is_equal(column) {
                    return Err(out_of_order());
                }
            }
        }
        if columns.next().is_some_and(|column| column.kind == ColumnKind::PartitionKey) {
            return Err(CqlError::invalid(
                "Group by is not supported on only a part of the partition key",
            ));
        }
        if by.prefix > 0 && is_distinct {
            return Err(CqlError::invalid(
                "Grouping on clustering columns is not allowed for SELECT DISTINCT queries",
            ));
        }
        Ok(by)
    }

    /// A function of GROUP BY: its column, what it computes and of which type, and what speaks
    /// against it.
    fn group_function(
        &mut self,
        function: &Function,
        selected: &Selected<'_>,
    ) -> Result<(Place, Expr, CqlType, Option<String>), CqlError> {
        if function.aggregate().is_some() {
            return Err(CqlError::invalid(format!(
                "Aggregate functions are not supported within the GROUP BY clause, got: system.{}",
                function.name()
            )));
        }
        let before = std::mem::take(&mut self.columns);
        let node = self.node(selected, None);
        let columns = std::mem::replace(&mut self.columns, before);
        let node = node?;
        let names = |columns: &[Place]| {
            let names = columns.iter().filter_map(|place| place.column(self.table));
            names.map(|c| types::maybe_quote(&c.name).into_owned()).collect::<Vec<_>>().join(",")
        };
        let place = match columns.as_slice() {
            [] => {
                return Err(CqlError::invalid(
                    "GROUP BY functions must have one clustering column name as parameter",
                ));
            }
            [place] => *place,
            several => {
                return Err(CqlError::invalid(format!(
                    "GROUP BY functions accept only one clustering column as parameter, got: {}",
                    names(several)
                )));
            }
        };
        if place.kind != ColumnKind::Clustering {
            return Err(CqlError::invalid(format!(
                "Group by functions are only supported on clustering columns, got {}",
                names(&columns)
            )));
        }
        let refused = not_monotonic(&node.expr);
        Ok((place, node.expr, node.ty, refused))
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
        Ok(Node::new(Expr::Part(Box::new(inner.expr), Part::Field(index)), name, ty))
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
        Ok(Node::new(Expr::Part(Box::new(inner.expr), part), selected.text(), ty))
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
        Ok(Node::new(Expr::Part(Box::new(inner.expr), part), selected.text(), ty))
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
        // one thing is in a parenthesis, unless a tuple of one is wanted
        let is_parenthesis = items.len() == 1 && !matches!(ty, CqlType::Tuple(_));
        let types = part::tuple_types(&ty).filter(|_| !is_parenthesis);
        let types: Option<Vec<CqlType>> = types.map(|types| types.into_iter().cloned().collect());
        let Some(types) = types else {
            let [one] = items else { return Err(Self::cannot_infer(selected.text())) };
            let inner = self.node(one, Some(&ty))?;
            let name = format!("({})", inner.name);
            return Ok(Node { name, ..inner });
        };
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for (item, ty) in items.iter().zip(&types) {
            let node = self.node(item, Some(ty))?;
            exprs.push(node.expr);
            names.push(node.name);
        }
        Ok(Node::new(Expr::Tuple(exprs), tuple_text(names), ty))
    }

    fn braces_node(
        &mut self,
        selected: &Selected<'_>,
        members: &[Member<'_>],
        expected: Option<&CqlType>,
    ) -> Result<Node, CqlError> {
        let ty = expected.cloned().ok_or_else(|| Self::cannot_infer(selected.text()))?;
        let mut names = Vec::new();
        let expr = match &ty {
            CqlType::Udt { definition, .. } => {
                let nothing = self.term(Term::Null);
                let mut fields = vec![Expr::Term(nothing); definition.fields.len()];
                for member in members {
                    let (at, ty) = field_of(member, definition)?;
                    let node = self.node(&member.value, Some(ty))?;
                    names.push(format!("{}: {}", member.field.unwrap_or_default(), node.name));
                    if let Some(slot) = fields.get_mut(at) {
                        *slot = node.expr;
                    }
                }
                Expr::Tuple(fields)
            }
            CqlType::Map { key, value, .. } => {
                if **key == CqlType::Duration {
                    return Err(CqlError::invalid(format!(
                        "Durations are not allowed as map keys: {ty}"
                    )));
                }
                let mut entries = Vec::with_capacity(members.len());
                for member in members {
                    let given = member.key.as_ref().map_err(Clone::clone)?;
                    let left = self.node(given, Some(key))?;
                    let right = self.node(&member.value, Some(value))?;
                    names.push(format!("{}: {}", left.name, right.name));
                    entries.push((left.expr, right.expr));
                }
                let (keys, values) = entries.into_iter().unzip();
                Expr::Map { key: (**key).clone(), keys, values }
            }
            _ => return Err(Self::cannot_infer(selected.text())),
        };
        Ok(Node::new(expr, format!("{{{}}}", names.join(", ")), ty))
    }

    fn vector_items(
        &mut self,
        items: &[Selected<'_>],
        element: &CqlType,
    ) -> Result<(Vec<Expr>, String), CqlError> {
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for item in items {
            let node = self.node(item, Some(element))?;
            exprs.push(node.expr);
            names.push(node.name);
        }
        Ok((exprs, format!("[{}]", names.join(", "))))
    }

    fn collection_node(
        &mut self,
        selected: &Selected<'_>,
        items: &[Selected<'_>],
        expected: Option<&CqlType>,
    ) -> Result<Node, CqlError> {
        // a list, but where a vector is wanted
        let wanted = expected.filter(|ty| matches!(ty, CqlType::Vector { .. }));
        let ty = wanted.cloned().or_else(|| selected.exact_type()).or_else(|| expected.cloned());
        let ty = ty.ok_or_else(|| Self::cannot_infer(selected.text()))?;
        if let (CqlType::Vector { element, dimension }, Selected::List(_)) = (&ty, selected) {
            if usize::try_from(*dimension) != Ok(items.len()) {
                return Err(CqlError::invalid(format!(
                    "Unable to create a vector selector of type {ty} from {} elements",
                    items.len()
                )));
            }
            let element = (**element).clone();
            let (exprs, name) = self.vector_items(items, &element)?;
            return Ok(Node::new(Expr::Vector(element, exprs), name, ty));
        }
        let (element, set) = match (&ty, selected) {
            // `{}` is a map too.
            (CqlType::Map { key, .. }, Selected::Set(items)) if items.is_empty() => (key, true),
            (CqlType::List { element, .. }, Selected::List(_)) => (element, false),
            (CqlType::Set { element, .. }, Selected::Set(_)) => (element, true),
            _ => return Err(Self::cannot_infer(selected.text())),
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
        Ok(Node::new(Expr::Elements { exprs, sorted_by }, name, ty))
    }
}

/// The type under which drivers are told of an aggregate's.
fn legacy_type(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::TimeUuid => {
            CqlType::Custom("org.apache.cassandra.db.marshal.LegacyTimeUUIDType".into())
        }
        ty => ty.clone(),
    }
}

/// Has it the same value for every row?
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Term(_) => true,
        Expr::Call(function, arguments) => function.is_pure() && arguments.iter().all(is_constant),
        _ => false,
    }
}

/// Why groups cannot be made of the results of a function, if they cannot.
fn not_monotonic(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(_) | Expr::Term(_) => None,
        Expr::Call(function, arguments) => {
            let constant: Vec<bool> = arguments.iter().map(is_constant).collect();
            if !function.is_monotonic(&constant) {
                return Some(format!(
                    "Only monotonic functions are supported in the GROUP BY clause. Got: {} ",
                    function.signature()
                ));
            }
            arguments.iter().filter(|argument| !is_constant(argument)).find_map(not_monotonic)
        }
        _ => Some(
            "Only column names and monotonic scalar functions are supported in the GROUP BY clause."
                .to_owned(),
        ),
    }
}
