//! A raw term meets its receiver.

use types::CqlType;
use types::hex::from_hex;

use crate::ast::{Literal, LiteralKind, Term as Raw};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assign::{self, call};
use crate::term::{Call, Marker, Term, Udt, literal, part, raw_type, text};

impl Term {
    /// Checks a term against what receives it, and notes its markers. `keyspace` is that of the
    /// statement.
    pub fn prepare(
        raw: &Raw,
        keyspace: &str,
        receiver: &ColumnSpec,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        match raw {
            Raw::Literal(literal) => prepare_literal(literal, receiver),
            Raw::Null if receiver.ty == CqlType::Counter => {
                Err(CqlError::invalid("Invalid null value for counter increment/decrement"))
            }
            Raw::Null => Ok(Self::Null),
            Raw::Marker(marker) => Ok(Self::Marker(Marker::prepare(*marker, receiver, scope))),
            Raw::List(items) => prepare_array(items, keyspace, receiver, scope),
            Raw::Set(items) => prepare_set(items, keyspace, receiver, scope),
            Raw::Map(entries) => prepare_map(entries, keyspace, receiver, scope),
            Raw::Udt(fields) => prepare_udt(fields, keyspace, receiver, scope),
            Raw::Tuple(items) => prepare_tuple(items, keyspace, receiver, scope),
            Raw::Function(..) | Raw::Cast(..) | Raw::Binary(..) | Raw::Negate(_) => {
                let (function, arguments) = call::resolve(raw, keyspace, receiver, scope)?;
                let mut terms = Vec::with_capacity(arguments.len());
                for (index, argument) in arguments.into_iter().enumerate() {
                    let spec = function.argument_spec(&receiver.keyspace, &receiver.table, index);
                    terms.push(Self::prepare(argument, keyspace, &spec, scope)?);
                }
                Ok(Self::Call(Box::new(Call { function, arguments: terms })))
            }
            Raw::TypeHint(hint, inner) => {
                let ty = raw_type::resolve(hint, keyspace, scope)?;
                let spec = receiver.derive(text::text(raw), ty);
                if !assign::test(inner, keyspace, &spec, scope)?.is_assignable() {
                    return Err(CqlError::invalid(format!(
                        "Cannot cast value {} to type {}",
                        text::text(inner),
                        text::type_text(hint)
                    )));
                }
                if !assign::test(raw, keyspace, receiver, scope)?.is_assignable() {
                    return Err(CqlError::invalid(format!(
                        "Cannot assign value {} to {} of type {}",
                        text::text(raw),
                        receiver.name,
                        receiver.ty
                    )));
                }
                Self::prepare(inner, keyspace, receiver, scope)
            }
        }
    }

    /// Prepares a tuple of terms for several receivers: the right side of `(a, b) = (1, 2)`.
    pub fn prepare_row(
        items: &[Raw],
        keyspace: &str,
        receivers: &[ColumnSpec],
        scope: &mut Scope<'_>,
    ) -> Result<Vec<Self>, CqlError> {
        if items.len() != receivers.len() {
            return Err(CqlError::invalid(format!(
                "Expected {} elements in value tuple, but got {}: {}",
                receivers.len(),
                items.len(),
                text::tuple_text(items.iter().map(text::text))
            )));
        }
        let pairs = items.iter().zip(receivers);
        pairs.map(|(item, receiver)| Self::prepare(item, keyspace, receiver, scope)).collect()
    }
}

impl Marker {
    /// Notes what a marker stands for.
    pub fn prepare(marker: u32, receiver: &ColumnSpec, scope: &mut Scope<'_>) -> Self {
        scope.variables.set(marker, receiver);
        Self { index: marker as usize, receiver: receiver.clone() }
    }
}

/// A constant if all its parts are.
fn folded(term: Term, parts_constant: bool) -> Result<Term, CqlError> {
    if parts_constant { term.fold() } else { Ok(term) }
}

fn prepare_literal(literal: &Literal, receiver: &ColumnSpec) -> Result<Term, CqlError> {
    let ty = &receiver.ty;
    let kind = match literal.kind {
        LiteralKind::String => "STRING",
        LiteralKind::Integer => "INTEGER",
        LiteralKind::Float => "FLOAT",
        LiteralKind::Boolean => "BOOLEAN",
        LiteralKind::Uuid => "UUID",
        LiteralKind::Hex => "HEX",
        LiteralKind::Duration => "DURATION",
    };
    if !literal::test(literal, ty).is_assignable() {
        return Err(CqlError::invalid(format!(
            "Invalid {kind} constant ({}) for \"{}\" of type {ty}",
            literal.text, receiver.name
        )));
    }
    if literal.kind == LiteralKind::Hex {
        let digits = literal.text.get(2..).unwrap_or_default();
        let value = from_hex(digits)
            .ok_or_else(|| CqlError::invalid(format!("cannot parse '{digits}' as hex bytes")))?;
        if matches!(ty, CqlType::Class(class) if **class != types::ClassType::RingOrder) {
            // Cassandra fails at such a value once it compares it
            ty.validate(&value).map_err(|error| CqlError::invalid(error.to_string()))?;
        }
        return Ok(Term::Constant(value));
    }
    if *ty == CqlType::Timestamp && literal.text.eq_ignore_ascii_case("now") {
        return Ok(Term::Now);
    }
    let ty = if *ty == CqlType::Counter { &CqlType::BigInt } else { ty };
    // `now` aside, no text means another value at another time.
    let value = ty.parse_text(&literal.text, 0);
    value.map(Term::Constant).map_err(|error| CqlError::invalid(error.to_string()))
}

fn prepare_array(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Term, CqlError> {
    match &receiver.ty {
        CqlType::List { element, .. } => {
            let spec = part::value(receiver, element);
            let terms = prepare_elements("list", items, keyspace, receiver, &spec, scope)?;
            let constant = terms.iter().all(Term::is_constant);
            folded(Term::List(terms), constant)
        }
        CqlType::Vector { element, dimension } => {
            if usize::try_from(*dimension) != Ok(items.len()) {
                return Err(CqlError::invalid(format!(
                    "Invalid vector literal for {} of type {}; expected {dimension} elements, but given {}",
                    receiver.name,
                    receiver.ty,
                    items.len()
                )));
            }
            let spec = part::value(receiver, element);
            let mut terms = Vec::with_capacity(items.len());
            for item in items {
                check_element("vector", "value", item, keyspace, receiver, &spec, scope)?;
                terms.push(Term::prepare(item, keyspace, &spec, scope)?);
            }
            let constant = terms.iter().all(Term::is_constant);
            folded(Term::Vector((**element).clone(), terms), constant)
        }
        other => Err(part::unexpected_array(other)),
    }
}

fn prepare_set(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Term, CqlError> {
    match &receiver.ty {
        CqlType::Set { element, .. } => {
            let spec = part::value(receiver, element);
            let terms = prepare_elements("set", items, keyspace, receiver, &spec, scope)?;
            let constant = terms.iter().all(Term::is_constant);
            folded(Term::Set((**element).clone(), terms), constant)
        }
        // `{}` is the empty map too.
        CqlType::Map { key, .. } if items.is_empty() => {
            folded(Term::Map((**key).clone(), Vec::new()), true)
        }
        other => Err(CqlError::invalid(format!(
            "Invalid set literal for {} of type {other}",
            receiver.name
        ))),
    }
}

/// The elements of a list or set literal: all are checked before the first is prepared.
fn prepare_elements(
    kind: &str,
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    spec: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Vec<Term>, CqlError> {
    for item in items {
        check_element(kind, "value", item, keyspace, receiver, spec, scope)?;
    }
    let mut terms = Vec::with_capacity(items.len());
    for item in items {
        let term = Term::prepare(item, keyspace, spec, scope)?;
        refuse_marker(kind, &term, receiver)?;
        terms.push(term);
    }
    Ok(terms)
}

fn refuse_marker(kind: &str, term: &Term, receiver: &ColumnSpec) -> Result<(), CqlError> {
    if term.has_marker() {
        return Err(CqlError::invalid(format!(
            "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
            receiver.name
        )));
    }
    Ok(())
}

fn check_element(
    kind: &str,
    what: &str,
    item: &Raw,
    keyspace: &str,
    receiver: &ColumnSpec,
    spec: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<(), CqlError> {
    if assign::test(item, keyspace, spec, scope)?.is_assignable() {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "Invalid {kind} literal for {}: {what} {} is not of type {}",
        receiver.name,
        text::text(item),
        spec.ty
    )))
}

fn prepare_map(
    entries: &[(Raw, Raw)],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Term, CqlError> {
    let CqlType::Map { key: key_type, value: value_type, .. } = &receiver.ty else {
        return Err(CqlError::invalid(format!(
            "Invalid map literal for {} of type {}",
            receiver.name, receiver.ty
        )));
    };
    let key_spec = part::key(receiver, key_type);
    let value_spec = part::value(receiver, value_type);
    for (key, value) in entries {
        check_element("map", "key", key, keyspace, receiver, &key_spec, scope)?;
        check_element("map", "value", value, keyspace, receiver, &value_spec, scope)?;
    }
    let mut terms = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = Term::prepare(key, keyspace, &key_spec, scope)?;
        let value = Term::prepare(value, keyspace, &value_spec, scope)?;
        refuse_marker("map", &key, receiver)?;
        refuse_marker("map", &value, receiver)?;
        terms.push((key, value));
    }
    let constant = terms.iter().all(|(key, value)| key.is_constant() && value.is_constant());
    folded(Term::Map((**key_type).clone(), terms), constant)
}

fn prepare_tuple(
    items: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Term, CqlError> {
    if let [single] = items
        && part::tuple_types(&receiver.ty).is_none()
    {
        return Term::prepare(single, keyspace, receiver, scope);
    }
    assign::check_tuple(items, keyspace, receiver, scope)?;
    let mut terms = Vec::with_capacity(items.len());
    for (item, spec) in items.iter().zip(part::components(receiver)) {
        terms.push(Term::prepare(item, keyspace, &spec, scope)?);
    }
    let constant = terms.iter().all(Term::is_constant);
    folded(Term::Tuple(terms), constant)
}

fn prepare_udt(
    fields: &[(String, Raw)],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &mut Scope<'_>,
) -> Result<Term, CqlError> {
    assign::check_udt(fields, keyspace, receiver, scope)?;
    let CqlType::Udt { definition, .. } = &receiver.ty else { return Ok(Term::Null) };
    let mut terms = Vec::with_capacity(definition.fields.len());
    for (name, ty) in &definition.fields {
        let raw = part::field_of(fields, name).unwrap_or(&Raw::Null);
        terms.push(Term::prepare(raw, keyspace, &part::field(receiver, name, ty), scope)?);
    }
    part::check_known_fields(fields, definition)?;
    let constant = terms.iter().all(Term::is_constant);
    let ty = receiver.ty.clone();
    folded(Term::Udt(Box::new(Udt { ty, fields: terms })), constant)
}
