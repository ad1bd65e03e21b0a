//! A term as error messages show it (`Term.Raw.getText`).

use std::fmt::Write as _;

use crate::ast::{LiteralKind, QualifiedName, RawType, Term};
use crate::term::function::operator_name;

/// The text of a term. Not the source: strings lose what was escaped, operators become the
/// functions that Cassandra makes of them.
pub fn text(term: &Term) -> String {
    let mut out = String::new();
    write_term(&mut out, term);
    out
}

/// Texts in parentheses, as Cassandra shows a tuple.
pub fn tuple_text<I: IntoIterator<Item = String>>(items: I) -> String {
    format!("({})", items.into_iter().collect::<Vec<_>>().join(", "))
}

fn write_term(out: &mut String, term: &Term) {
    match term {
        Term::Literal(literal) if literal.kind == LiteralKind::String => {
            _ = write!(out, "'{}'", literal.text);
        }
        Term::Literal(literal) => out.push_str(&literal.text),
        Term::Null => out.push_str("NULL"),
        Term::Marker(_) => out.push('?'),
        Term::List(items) => write_terms(out, '[', items.iter(), ']'),
        Term::Set(items) => write_terms(out, '{', items.iter(), '}'),
        Term::Tuple(items) => write_terms(out, '(', items.iter(), ')'),
        Term::Map(entries) => {
            write_pairs(out, entries.iter().map(|(key, value)| (text(key), value)));
        }
        Term::Udt(fields) => {
            write_pairs(out, fields.iter().map(|(name, value)| (name.clone(), value)));
        }
        Term::Function(name, arguments) => {
            out.push_str(&function_text(name));
            write_terms(out, '(', arguments.iter(), ')');
        }
        Term::Cast(term, ty) => {
            _ = write!(out, "system.cast_as_{}", ty.name());
            write_terms(out, '(', [&**term].into_iter(), ')');
        }
        Term::TypeHint(ty, term) => {
            _ = write!(out, "({})", type_text(ty));
            write_term(out, term);
        }
        Term::Binary(operator, left, right) => {
            _ = write!(out, "system.\"{}\"", operator_name(*operator));
            write_terms(out, '(', [&**left, &**right].into_iter(), ')');
        }
        Term::Negate(term) => {
            out.push_str("system.\"_negate\"");
            write_terms(out, '(', [&**term].into_iter(), ')');
        }
    }
}

fn write_terms<'a>(
    out: &mut String,
    open: char,
    terms: impl Iterator<Item = &'a Term>,
    close: char,
) {
    out.push(open);
    for (index, term) in terms.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_term(out, term);
    }
    out.push(close);
}

fn write_pairs<'a>(out: &mut String, pairs: impl Iterator<Item = (String, &'a Term)>) {
    out.push('{');
    for (index, (key, value)) in pairs.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(&key);
        out.push_str(": ");
        write_term(out, value);
    }
    out.push('}');
}

/// The name of a function in CQL; `token` is never quoted.
fn function_text(name: &QualifiedName) -> String {
    let system = name.keyspace.as_deref().is_none_or(|keyspace| keyspace == "system");
    if system && name.name == "token" {
        return name.name.clone();
    }
    let plain = types::maybe_quote(&name.name);
    match &name.keyspace {
        Some(keyspace) => format!("{}.{plain}", types::maybe_quote(keyspace)),
        None => plain.into_owned(),
    }
}

/// A type as written, as error messages show it (`CQL3Type.Raw.toString`).
pub fn type_text(ty: &RawType) -> String {
    match ty {
        RawType::Native(native) => native.name().to_owned(),
        RawType::List(element) => format!("list<{}>", type_text(element)),
        RawType::Set(element) => format!("set<{}>", type_text(element)),
        RawType::Map(key, value) => format!("map<{}, {}>", type_text(key), type_text(value)),
        RawType::Tuple(types) => {
            let types: Vec<_> = types.iter().map(type_text).collect();
            format!("tuple<{}>", types.join(", "))
        }
        RawType::Vector(element, dimension) => {
            format!("vector<{}, {dimension}>", type_text(element))
        }
        RawType::Frozen(inner) => match &**inner {
            RawType::Tuple(_) | RawType::Vector(..) | RawType::Frozen(_) => type_text(inner),
            inner => format!("frozen<{}>", type_text(inner)),
        },
        RawType::User(name) => match &name.keyspace {
            Some(keyspace) => format!("{keyspace}.{}", name.name),
            None => name.name.clone(),
        },
        RawType::Custom(class) => class.clone(),
    }
}
