//! The native functions that terms and selections call, and how a call finds its overload
//! (`FunctionResolver`).

use std::cmp::Ordering;

use schema::Table;
use types::time::{MILLIS_PER_DAY, NANOS_PER_DAY};
use types::{CqlType, Decimal, Token, Uuid};

use crate::ast::{Literal, LiteralKind, QualifiedName, Term as Raw};
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assign::{self, Assignment};
use crate::term::{raw_type, text};

/// How deep calls may stand in each other's arguments. Each overload is tried on all arguments, so that the work
/// grows by a factor with each level; Cassandra has no such bound.
pub const MAX_CALL_DEPTH: usize = 6;

/// Functions of Cassandra that we know and cannot call yet.
pub const NOT_YET: [&str; 34] = [
    "abs",
    "avg",
    "castasascii",
    "collection_avg",
    "collection_count",
    "collection_max",
    "collection_min",
    "collection_sum",
    "exp",
    "from_json",
    "fromjson",
    "log",
    "log10",
    "map_keys",
    "map_values",
    "mask_default",
    "mask_hash",
    "mask_inner",
    "mask_null",
    "mask_outer",
    "mask_replace",
    "max",
    "min",
    "round",
    "similarity_cosine",
    "similarity_dot_product",
    "similarity_euclidean",
    "sum",
    "token_of",
    "vector_as_blob",
    "dateof",
    "unixtimestampof",
    "random_float_vector",
    "normalize_l2",
];

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    TimeUuidNow,
    TimestampNow,
    DateNow,
    TimeNow,
    RandomUuid,
    MinTimeUuid,
    MaxTimeUuid,
    ToDate,
    ToTimestamp,
    ToUnixTimestamp,
    Token,
    ToBlob,
    FromBlob,
    ToJson,
}

/// One overload of a native function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    name: String,
    arguments: Vec<CqlType>,
    returns: CqlType,
    work: Work,
}

/// An argument of a call whose overload is sought: a term, or something selected.
pub trait Argument {
    /// Does it fit a parameter?
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError>;
    /// As error messages show it.
    fn text(&self) -> String;
    /// The type it would be given without a parameter to meet (`getCompatibleTypeIfKnown`).
    fn known_type(&self) -> Option<CqlType>;
}

/// A term as an argument.
struct TermArgument<'a, 's> {
    raw: &'a Raw,
    keyspace: &'a str,
    scope: &'a Scope<'s>,
}

impl Argument for TermArgument<'_, '_> {
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError> {
        assign::test(self.raw, self.keyspace, receiver, self.scope)
    }

    fn text(&self) -> String {
        text::text(self.raw)
    }

    fn known_type(&self) -> Option<CqlType> {
        known_type(self.raw, self.keyspace, self.scope)
    }
}

impl Function {
    /// Its name without the keyspace, which is `system`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types of its arguments.
    pub fn arguments(&self) -> &[CqlType] {
        &self.arguments
    }

    /// The type of its result.
    pub fn returns(&self) -> &CqlType {
        &self.returns
    }

    /// Does it give the same result for the same arguments?
    pub fn is_pure(&self) -> bool {
        !matches!(
            self.work,
            Work::TimeUuidNow
                | Work::TimestampNow
                | Work::DateNow
                | Work::TimeNow
                | Work::RandomUuid
        )
    }

    /// What receives an argument: `arg0(system.todate)`.
    pub fn argument_spec(&self, keyspace: &str, table: &str, index: usize) -> ColumnSpec {
        let ty = self.arguments.get(index).cloned().unwrap_or(CqlType::Blob);
        ColumnSpec::new(keyspace, table, format!("arg{index}(system.{})", self.name), ty)
    }

    fn fits(&self, receiver: &CqlType) -> Assignment {
        Assignment::of_types(receiver, &self.returns)
    }

    fn signature(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(CqlType::cql_name).collect();
        format!("system.{} : ({}) -> {}", self.name, arguments.join(", "), self.returns)
    }

    /// Calls it. Arguments are serialized values, `None` for null.
    pub fn execute(
        &self,
        arguments: &[Option<&[u8]>],
        bind: &Bind<'_>,
    ) -> Result<Option<Vec<u8>>, CqlError> {
        let first = arguments.first().copied().flatten();
        // The empty value of a time is no time.
        let millis = || first.and_then(|value| millis_of(self.arguments.first()?, value));
        Ok(match self.work {
            Work::TimeUuidNow => Some((bind.time_uuid)().to_vec()),
            Work::TimestampNow => Some(bind.now_millis.to_be_bytes().to_vec()),
            Work::DateNow => Some(date_of_millis(bind.now_millis)),
            Work::TimeNow => {
                let nanos = bind.now_millis.rem_euclid(MILLIS_PER_DAY) * 1_000_000 % NANOS_PER_DAY;
                Some(nanos.to_be_bytes().to_vec())
            }
            Work::RandomUuid => Some(Uuid::from_random((bind.random)()).to_bytes().to_vec()),
            Work::MinTimeUuid => millis().map(|at| Uuid::min_of_millis(at).to_bytes().to_vec()),
            Work::MaxTimeUuid => millis().map(|at| Uuid::max_of_millis(at).to_bytes().to_vec()),
            Work::ToDate => millis().map(date_of_millis),
            Work::ToTimestamp | Work::ToUnixTimestamp => {
                millis().map(|at| at.to_be_bytes().to_vec())
            }
            Work::Token => token(arguments)?,
            Work::ToBlob => first.map(<[u8]>::to_vec),
            Work::FromBlob => match first {
                Some(value) => Some(self.checked_blob(value)?),
                None => None,
            },
            Work::ToJson => Some(self.json(first)?.into_bytes()),
        })
    }

    /// The JSON text of the argument.
    fn json(&self, value: Option<&[u8]>) -> Result<String, CqlError> {
        match (self.arguments.first(), value) {
            (Some(ty), Some(value)) if !value.is_empty() || !ty.is_empty_meaningless() => {
                let bytes = || format!("0x{} is no {ty}", types::hex::to_hex(value));
                ty.to_json(value).ok_or_else(|| CqlError::invalid(bytes()))
            }
            _ => Ok("null".to_owned()),
        }
    }

    fn checked_blob(&self, value: &[u8]) -> Result<Vec<u8>, CqlError> {
        match self.returns.validate(value) {
            Ok(()) => Ok(value.to_vec()),
            Err(_) => Err(CqlError::invalid(format!(
                "In call to function system.{}, value 0x{} is not a valid binary representation for type {}",
                self.name,
                types::hex::to_hex(value),
                self.name.trim_start_matches("blob_as_").trim_start_matches("blobas"),
            ))),
        }
    }
}

/// Milliseconds since 1970 of a value of a time type.
fn millis_of(ty: &CqlType, value: &[u8]) -> Option<i64> {
    match ty {
        CqlType::Timestamp => ty.as_i64(value),
        CqlType::Date => ty.as_i64(value)?.checked_mul(MILLIS_PER_DAY),
        CqlType::TimeUuid => Uuid::from_value(value)?.unix_millis(),
        _ => None,
    }
}

/// The date of a time. Java rounds whole seconds down and days towards 1970: so does this.
fn date_of_millis(millis: i64) -> Vec<u8> {
    let days = millis.div_euclid(1000) / (MILLIS_PER_DAY / 1000);
    ((days + (1 << 31)) as u32).to_be_bytes().to_vec()
}

/// The token of a partition key given by its columns; null if one of them is.
fn token(arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CqlError> {
    let Some(values) = arguments.iter().copied().collect::<Option<Vec<&[u8]>>>() else {
        return Ok(None);
    };
    let key = schema_key(&values)?;
    Ok(Some(Token::of(&key).0.to_be_bytes().to_vec()))
}

/// As `Table::partition_key_bytes`, without the table at hand.
fn schema_key(values: &[&[u8]]) -> Result<Vec<u8>, CqlError> {
    if let [value] = values {
        return Ok(value.to_vec());
    }
    let mut key = Vec::new();
    for value in values {
        let length = u16::try_from(value.len()).map_err(|_| {
            CqlError::invalid(format!(
                "Key length of {} is longer than maximum of {}",
                value.len(),
                schema::MAX_KEY_LENGTH
            ))
        })?;
        key.extend_from_slice(&length.to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    Ok(key)
}

/// The native types that have functions to and from blobs, by the names that these bear. A counter's are
/// those of a `bigint`.
const BLOB_PEERS: [(&str, CqlType); 21] = [
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("empty", CqlType::Empty),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varchar", CqlType::Text),
    ("varint", CqlType::VarInt),
];

/// All overloads of a name. `table` is what `token` asks for its key.
fn overloads(name: &str, table: Option<&Table>) -> Vec<Function> {
    use CqlType as T;
    let make = |arguments: &[CqlType], returns: &CqlType, work| Function {
        name: name.to_owned(),
        arguments: arguments.to_vec(),
        returns: returns.clone(),
        work,
    };
    let each = |arguments: &[CqlType], returns: CqlType, work| {
        arguments
            .iter()
            .map(|argument| make(std::slice::from_ref(argument), &returns, work))
            .collect()
    };
    match name {
        "now" | "current_timeuuid" | "currenttimeuuid" => {
            vec![make(&[], &T::TimeUuid, Work::TimeUuidNow)]
        }
        "current_timestamp" | "currenttimestamp" => {
            vec![make(&[], &T::Timestamp, Work::TimestampNow)]
        }
        "current_date" | "currentdate" => vec![make(&[], &T::Date, Work::DateNow)],
        "current_time" | "currenttime" => vec![make(&[], &T::Time, Work::TimeNow)],
        "uuid" => vec![make(&[], &T::Uuid, Work::RandomUuid)],
        "min_timeuuid" | "mintimeuuid" => each(&[T::Timestamp], T::TimeUuid, Work::MinTimeUuid),
        "max_timeuuid" | "maxtimeuuid" => each(&[T::Timestamp], T::TimeUuid, Work::MaxTimeUuid),
        "to_date" | "todate" => each(&[T::TimeUuid, T::Timestamp], T::Date, Work::ToDate),
        "to_timestamp" | "totimestamp" => {
            each(&[T::TimeUuid, T::Date], T::Timestamp, Work::ToTimestamp)
        }
        "to_unix_timestamp" | "tounixtimestamp" => {
            each(&[T::TimeUuid, T::Timestamp, T::Date], T::BigInt, Work::ToUnixTimestamp)
        }
        "token" => {
            let key = |table: &Table| table.partition_key.iter().map(|c| c.ty.clone()).collect();
            let arguments: Vec<_> = table.map(key).unwrap_or_default();
            vec![make(&arguments, &T::BigInt, Work::Token)]
        }
        _ => blob_overloads(name)
            .into_iter()
            .map(|(from, to, work)| make(&[from], &to, work))
            .collect(),
    }
}

/// `to_json` takes an argument of any type that it can be told to have.
fn to_json(name: &str, arguments: &[&dyn Argument]) -> Result<Function, CqlError> {
    let [argument] = arguments else {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments for function system.{name}(any)"
        )));
    };
    let ty = argument.known_type().ok_or_else(|| {
        CqlError::invalid(format!(
            "Cannot infer type of argument {} in call to function system.{name}(any): use type casts to disambiguate",
            argument.text()
        ))
    })?;
    let (name, arguments) = (name.to_owned(), vec![ty]);
    Ok(Function { name, arguments, returns: CqlType::Text, work: Work::ToJson })
}

/// The type that a term has by itself: that of its hint or call, or the smallest that a constant fits.
pub fn known_type(term: &Raw, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
    match term {
        Raw::Literal(literal) => literal_type(literal),
        Raw::TypeHint(hint, _) => raw_type::resolve(hint, keyspace, scope).ok(),
        Raw::List(items) => {
            let types = items.iter().filter_map(|item| known_type(item, keyspace, scope));
            list_of(&types.collect::<Vec<_>>())
        }
        Raw::Function(name, arguments) => {
            let receiver = ColumnSpec::new(keyspace, "", "", CqlType::Blob);
            let resolved = resolve_terms(name, arguments, keyspace, &receiver, scope);
            resolved.ok().flatten().map(|function| function.returns)
        }
        _ => None,
    }
}

/// A list of the first type that can take all others.
pub fn list_of(types: &[CqlType]) -> Option<CqlType> {
    let takes_all = |ty: &&CqlType| types.iter().all(|it| assign::is_value_compatible(ty, it));
    let element = types.iter().find(takes_all)?.clone().into();
    Some(CqlType::List { element, frozen: true })
}

fn literal_type(literal: &Literal) -> Option<CqlType> {
    let text = literal.text.as_str();
    Some(match literal.kind {
        LiteralKind::String if text.is_ascii() => CqlType::Ascii,
        LiteralKind::String => CqlType::Text,
        LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        LiteralKind::Integer => CqlType::VarInt,
        LiteralKind::Float => match text.parse::<f64>().ok()? {
            number if number.is_finite() => {
                let shortest = Decimal::parse(&types::float::format_double(number))?;
                match Decimal::parse(text)?.compare(&shortest) {
                    Ordering::Equal => CqlType::Double,
                    _ => CqlType::Decimal,
                }
            }
            _ => CqlType::Double,
        },
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Uuid => match Uuid::parse(text)?.version() {
            1 => CqlType::TimeUuid,
            _ => CqlType::Uuid,
        },
        // Cassandra takes hexadecimal digits for a tinyint here, which they then do not fit
        LiteralKind::Hex => CqlType::TinyInt,
        LiteralKind::Duration => CqlType::Duration,
    })
}

fn blob_overloads(name: &str) -> Option<(CqlType, CqlType, Work)> {
    let peer = |wanted: &str| {
        let found = BLOB_PEERS.iter().find(|(name, _)| *name == wanted)?;
        Some(found.1.clone())
    };
    if let Some(ty) = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob")) {
        return Some((peer(ty)?, CqlType::Blob, Work::ToBlob));
    }
    let ty = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas"))?;
    Some((CqlType::Blob, peer(ty)?, Work::FromBlob))
}

/// `name` or `keyspace.name`.
fn shown(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}

/// The overload that a call means; `None` if there is no function of that name. `receiver` is the type of
/// what takes the result, where that is known, and `table` the one that `token` is asked about.
pub fn resolve(
    name: &QualifiedName,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
    table: Option<&Table>,
) -> Result<Option<Function>, CqlError> {
    if name.keyspace.as_deref().is_some_and(|keyspace| keyspace != "system") {
        return Ok(None);
    }
    let candidates = match name.name.as_str() {
        "to_json" | "tojson" => vec![to_json(&name.name, arguments)?],
        other => overloads(other, table),
    };
    let (keyspace, table) = table.map_or(("", ""), |t| (t.keyspace.as_str(), t.name.as_str()));
    match candidates.as_slice() {
        [] => return Ok(None),
        [only] => {
            check_arguments(only, arguments, keyspace, table)?;
            return Ok(Some(only.clone()));
        }
        _ => {}
    }
    let mut compatible = Vec::new();
    for candidate in &candidates {
        if receiver.is_some_and(|receiver| !candidate.fits(receiver).is_assignable()) {
            continue;
        }
        match match_arguments(candidate, arguments, keyspace, table)? {
            Assignment::Exact => return Ok(Some(candidate.clone())),
            Assignment::Weak => compatible.push(candidate),
            Assignment::None => {}
        }
    }
    let signatures = |functions: Vec<&Function>| {
        functions.into_iter().map(Function::signature).collect::<Vec<_>>().join(", ")
    };
    match compatible.as_slice() {
        [] => Err(CqlError::invalid(format!(
            "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
            shown(name),
            signatures(candidates.iter().collect())
        ))),
        [only] => Ok(Some((*only).clone())),
        _ => Err(CqlError::invalid(format!(
            "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
            shown(name),
            signatures(compatible)
        ))),
    }
}

fn check_arguments(
    function: &Function,
    arguments: &[&dyn Argument],
    keyspace: &str,
    table: &str,
) -> Result<(), CqlError> {
    if arguments.len() != function.arguments.len() {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function system.{}: {} required but {} provided",
            function.name,
            function.arguments.len(),
            arguments.len()
        )));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let spec = function.argument_spec(keyspace, table, index);
        if !argument.test(&spec)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Type error: {} cannot be passed as argument {index} of function system.{} of type {}",
                argument.text(),
                function.name,
                spec.ty
            )));
        }
    }
    Ok(())
}

fn match_arguments(
    function: &Function,
    arguments: &[&dyn Argument],
    keyspace: &str,
    table: &str,
) -> Result<Assignment, CqlError> {
    if arguments.len() != function.arguments.len() {
        return Ok(Assignment::None);
    }
    let mut worst = Assignment::Exact;
    for (index, argument) in arguments.iter().enumerate() {
        worst = worst.max(argument.test(&function.argument_spec(keyspace, table, index))?);
    }
    Ok(worst)
}

/// The most calls that stand in each other in a term.
fn call_depth(term: &Raw) -> usize {
    let deepest = |terms: &[Raw]| terms.iter().map(call_depth).max().unwrap_or(0);
    match term {
        Raw::Function(_, arguments) => 1 + deepest(arguments),
        Raw::List(terms) | Raw::Set(terms) | Raw::Tuple(terms) => deepest(terms),
        Raw::Map(entries) => {
            entries.iter().map(|(k, v)| call_depth(k).max(call_depth(v))).max().unwrap_or(0)
        }
        Raw::Udt(fields) => fields.iter().map(|(_, v)| call_depth(v)).max().unwrap_or(0),
        Raw::Cast(term, _) | Raw::TypeHint(_, term) | Raw::Negate(term) => call_depth(term),
        Raw::Binary(_, left, right) => call_depth(left).max(call_depth(right)),
        Raw::Literal(_) | Raw::Null | Raw::Marker(_) => 0,
    }
}

fn resolve_terms(
    name: &QualifiedName,
    arguments: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Option<Function>, CqlError> {
    if arguments.iter().any(|argument| call_depth(argument) >= MAX_CALL_DEPTH) {
        return Err(CqlError::invalid("Calls of functions are nested too deep"));
    }
    let table = scope.schema.table(&receiver.keyspace, &receiver.table);
    let terms: Vec<_> = arguments.iter().map(|raw| TermArgument { raw, keyspace, scope }).collect();
    let terms: Vec<&dyn Argument> = terms.iter().map(|term| term as &dyn Argument).collect();
    resolve(name, &terms, Some(&receiver.ty), table.map(|table| &**table))
}

/// Does the result of a call fit a receiver? Calls that cannot be resolved do here: the message that they
/// get later is the better one.
pub fn test_call(
    name: &QualifiedName,
    arguments: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Assignment {
    match resolve_terms(name, arguments, keyspace, receiver, scope) {
        Ok(Some(function)) if function.work != Work::Token => function.fits(&receiver.ty),
        _ => Assignment::Weak,
    }
}

/// The function that a term calls, checked against what receives its result.
pub fn resolve_call(
    name: &QualifiedName,
    arguments: &[Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Function, CqlError> {
    let function = resolve_terms(name, arguments, keyspace, receiver, scope)?;
    let Some(function) = function else {
        let native = name.keyspace.as_deref().is_none_or(|keyspace| keyspace == "system");
        return Err(match native && NOT_YET.contains(&name.name.as_str()) {
            true => CqlError::unsupported(format_args!("Function {}", name.name)),
            false => CqlError::invalid(format!("Unknown function {} called", shown(name))),
        });
    };
    if !function.fits(&receiver.ty).is_assignable() {
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of function system.{} (type {}) to {} (type {})",
            function.name, function.returns, receiver.name, receiver.ty
        )));
    }
    Ok(function)
}
