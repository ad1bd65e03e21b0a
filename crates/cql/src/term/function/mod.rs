//! Native functions: what there is ([`registry`]), which one a call means ([`resolve`]), what each
//! does.
//!
//! A call is resolved once, at PREPARE, into a [`Function`]: one overload with its types. Running
//! it looks nothing up.

pub(crate) mod aggregate;
mod argument;
mod collection;
mod mask;
pub(crate) mod number;
mod registry;
mod resolve;
mod time;

use types::{CqlType, Decimal, Token, Uuid};

use crate::ast::Arithmetic;
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::ColumnSpec;
use crate::term::assignment::Assignment;
use aggregate::Aggregate;
use mask::Mask;
use number::{Math, Number};

pub use argument::Argument;
pub use registry::{NEGATE, operator_name, operator_of};
pub use resolve::{common_type, resolve, shown};

/// How vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Similarity {
    Cosine,
    Euclidean,
    DotProduct,
}

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
    Floor,
    Token,
    /// Of a table whose token is the key itself.
    KeyAsToken,
    ToBlob,
    FromBlob,
    ToJson,
    FromJson,
    Operate(Arithmetic),
    Negate,
    Concatenate,
    /// A time and a duration; true for their difference.
    AddDuration(bool),
    Math(Math),
    CastNumber,
    CastText,
    /// A value of one type that is one of another as it stands.
    CastSame,
    CastDate,
    CastTimestamp,
    MapKeys,
    MapValues,
    CountElements,
    /// An aggregate over the elements of a collection.
    Fold(Aggregate),
    Mask(Mask),
    Similarity(Similarity),
    Aggregate(Aggregate),
}

/// One overload of a native function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    name: String,
    arguments: Vec<CqlType>,
    returns: CqlType,
    work: Work,
    is_made: bool,
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

    /// The type of its result as drivers are told: a `timeuuid` goes by the name of another class
    /// where Cassandra passes it through the types of user-defined functions.
    pub fn shown_type(&self) -> CqlType {
        let passes_through = match self.work {
            Work::FromBlob => true,
            // the elements of a collection have the type of the collection, a token that of its key
            Work::Fold(_) | Work::MapKeys | Work::MapValues | Work::KeyAsToken => false,
            _ => self.is_made,
        };
        match &self.returns {
            CqlType::TimeUuid if passes_through => {
                CqlType::Custom("org.apache.cassandra.db.marshal.LegacyTimeUUIDType".into())
            }
            ty => ty.clone(),
        }
    }

    /// Is its result of the very type of its first argument, as Cassandra hands it through?
    pub fn keeps_type(&self) -> bool {
        match self.work {
            Work::Mask(mask) => mask != Mask::Hash,
            Work::Aggregate(aggregate) => matches!(aggregate, Aggregate::Min | Aggregate::Max),
            _ => false,
        }
    }

    /// Is it one of those that hide their first argument?
    pub fn is_mask(&self) -> bool {
        matches!(self.work, Work::Mask(_))
    }

    /// What is aggregated, if this is an aggregate.
    pub(crate) fn aggregate(&self) -> Option<Aggregate> {
        match self.work {
            Work::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        }
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

    /// Does its result never fall while its argument grows? Of several arguments the others must be
    /// constants.
    pub fn is_monotonic(&self, is_constant: &[bool]) -> bool {
        match self.work {
            Work::ToDate | Work::ToTimestamp | Work::ToUnixTimestamp => true,
            Work::Floor => is_constant
                .split_first()
                .is_some_and(|(time, rest)| !time && rest.iter().all(|c| *c)),
            _ => false,
        }
    }

    /// What receives an argument: `arg0(system.todate)`.
    pub fn argument_spec(&self, keyspace: &str, table: &str, index: usize) -> ColumnSpec {
        let ty = self.arguments.get(index).cloned().unwrap_or(CqlType::Blob);
        ColumnSpec::new(keyspace, table, format!("arg{index}(system.{})", self.name), ty)
    }

    /// A call as the names of result columns have it.
    pub fn text(&self, arguments: &[String]) -> String {
        let first = arguments.first().map_or("", String::as_str);
        match self.work {
            Work::Operate(_) | Work::Concatenate | Work::AddDuration(_) => {
                let second = arguments.get(1).map_or("", String::as_str);
                format!("{first} {} {second}", self.operator())
            }
            Work::Negate => format!("-{first}"),
            Work::CastNumber
            | Work::CastText
            | Work::CastSame
            | Work::CastDate
            | Work::CastTimestamp => format!("cast({first} as {})", self.returns),
            Work::Aggregate(Aggregate::CountRows) => "count".to_owned(),
            _ => format!("system.{}({})", self.name, arguments.join(", ")),
        }
    }

    fn operator(&self) -> char {
        registry::operator_of(&self.name).unwrap_or('?')
    }

    /// Is it made for the types of a call (Cassandra's factories)?
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// May its result be assigned to a receiver?
    pub fn fits(&self, receiver: &CqlType) -> Assignment {
        Assignment::of_types(receiver, &self.returns)
    }

    /// As error messages show it.
    pub fn signature(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(CqlType::cql_name).collect();
        format!("system.{} : ({}) -> {}", self.name, arguments.join(", "), self.returns)
    }

    fn failed(&self, message: String) -> CqlError {
        CqlError::Function {
            keyspace: "system".to_owned(),
            name: self.name.clone(),
            arguments: self.arguments.iter().map(CqlType::cql_name).collect(),
            message,
        }
    }

    fn operation_failed(&self, why: &str) -> CqlError {
        let ty =
            |index: usize| self.arguments.get(index).map(CqlType::cql_name).unwrap_or_default();
        let operator = self.operator();
        self.failed(format!("the operation '{} {operator} {}' failed: {why}", ty(0), ty(1)))
    }

    /// Argument `index` as a number; none for null and for the empty value.
    fn number(&self, arguments: &[Option<&[u8]>], index: usize) -> Option<Number> {
        Number::of(self.arguments.get(index)?, arguments.get(index).copied().flatten()?)
    }

    /// Calls it. Arguments are serialized values, `None` for null.
    pub fn execute(
        &self,
        arguments: &[Option<&[u8]>],
        bind: &Bind<'_>,
    ) -> Result<Option<Vec<u8>>, CqlError> {
        let first = arguments.first().copied().flatten();
        let first_type = || self.arguments.first().unwrap_or(&CqlType::Blob);
        let millis = || match first {
            Some(value) => time::millis_of(first_type(), value).map_err(CqlError::Invalid),
            None => Ok(None),
        };
        Ok(match self.work {
            Work::TimeUuidNow => Some((bind.time_uuid)().to_vec()),
            Work::TimestampNow => Some(bind.now_millis.to_be_bytes().to_vec()),
            Work::DateNow => Some(time::date_of_millis(bind.now_millis)),
            Work::TimeNow => Some(time::time_of_millis(bind.now_millis)),
            Work::RandomUuid => Some(Uuid::from_random((bind.random)()).to_bytes().to_vec()),
            Work::MinTimeUuid => millis()?.map(|at| Uuid::min_of_millis(at).to_bytes().to_vec()),
            Work::MaxTimeUuid => millis()?.map(|at| Uuid::max_of_millis(at).to_bytes().to_vec()),
            Work::ToDate | Work::CastDate => millis()?.map(time::date_of_millis),
            Work::ToTimestamp | Work::ToUnixTimestamp | Work::CastTimestamp => {
                millis()?.map(|at| at.to_be_bytes().to_vec())
            }
            Work::Floor => time::floor(&self.arguments, arguments)?,
            Work::Token => key_of(arguments)?.map(|key| Token::of(&key).0.to_be_bytes().to_vec()),
            Work::KeyAsToken => key_of(arguments)?,
            Work::ToBlob | Work::CastSame => first.map(<[u8]>::to_vec),
            Work::FromBlob => match first {
                Some(value) => Some(self.checked_blob(value)?),
                None => None,
            },
            Work::ToJson => Some(self.json(first)?.into_bytes()),
            Work::FromJson => match first {
                Some(text) => self.value_of_json(text, bind.now_millis)?,
                None => None,
            },
            Work::Operate(operator) => {
                match (self.number(arguments, 0), self.number(arguments, 1)) {
                    (Some(left), Some(right)) => {
                        let result = number::operate(operator, &self.returns, &left, &right);
                        Some(result.map_err(|why| self.operation_failed(&why))?)
                    }
                    _ => None,
                }
            }
            Work::Negate => match self.number(arguments, 0) {
                Some(number) => {
                    Some(number::negate(&self.returns, &number).map_err(CqlError::invalid)?)
                }
                None => None,
            },
            Work::Math(math) => match self.number(arguments, 0) {
                Some(number) => {
                    let result = number::compute(math, &self.returns, &number);
                    Some(result.map_err(CqlError::invalid)?)
                }
                None => None,
            },
            Work::CastNumber => match self.number(arguments, 0) {
                Some(number) => Some(number.cast(&self.returns).map_err(CqlError::invalid)?),
                None => None,
            },
            Work::CastText => {
                let value = first.filter(|value| !value.is_empty());
                value.map(|value| plain_text(first_type(), value).into_bytes())
            }
            Work::Concatenate => match (first, arguments.get(1).copied().flatten()) {
                (Some(left), Some(right)) => Some([left, right].concat()),
                _ => None,
            },
            Work::AddDuration(subtract) => time::add_duration(first_type(), arguments, subtract)
                .map_err(|why| self.operation_failed(&why))?,
            Work::MapKeys => first.map(collection::map_keys),
            Work::MapValues => first.map(collection::map_values),
            Work::CountElements => first.map(collection::count),
            Work::Fold(aggregate) => match first {
                Some(value) => collection::fold(aggregate, first_type(), value)?,
                None => None,
            },
            Work::Mask(mask) => mask::mask(mask, self, arguments)?,
            Work::Similarity(similarity) => self.similarity(similarity, arguments)?,
            Work::Aggregate(_) => None,
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

    /// The value that JSON text stands for.
    fn value_of_json(&self, text: &[u8], now_millis: i64) -> Result<Option<Vec<u8>>, CqlError> {
        let text = String::from_utf8_lossy(text);
        let json = types::Json::parse(&text).map_err(|error| {
            self.failed(format!(
                "execution of 'system.{}[text]' failed: Could not decode JSON string '{text}': {error}",
                self.name
            ))
        })?;
        if json == types::Json::Null {
            return Ok(None);
        }
        let value = self.returns.parse_json(&json, now_millis);
        value.map(Some).map_err(|why| match is_of_duration(&why) {
            true => CqlError::Invalid(why),
            false => {
                self.failed(format!("org.apache.cassandra.serializers.MarshalException: {why}"))
            }
        })
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

    /// How close two vectors are, from 0 to 1.
    fn similarity(
        &self,
        similarity: Similarity,
        arguments: &[Option<&[u8]>],
    ) -> Result<Option<Vec<u8>>, CqlError> {
        let [Some(left), Some(right)] = arguments else { return Ok(None) };
        if left.is_empty() || right.is_empty() {
            return Ok(None);
        }
        let floats = |value: &[u8]| -> Vec<f32> {
            value.as_chunks::<4>().0.iter().map(|bytes| f32::from_be_bytes(*bytes)).collect()
        };
        let (left, right) = (floats(left), floats(right));
        let is_zero = |vector: &[f32]| vector.iter().all(|number| *number == 0.0);
        if similarity == Similarity::Cosine && (is_zero(&left) || is_zero(&right)) {
            return Err(CqlError::invalid(format!(
                "Function system.{} doesn't support all-zero vectors.",
                self.name
            )));
        }
        let pairs = || left.iter().zip(&right);
        let dot = |pairs: &mut dyn Iterator<Item = (&f32, &f32)>| {
            pairs.fold(0.0_f32, |sum, (a, b)| sum + a * b)
        };
        let result = match similarity {
            Similarity::Cosine => {
                let (mut sum, mut a2, mut b2) = (0.0_f32, 0.0_f32, 0.0_f32);
                for (a, b) in pairs() {
                    sum += a * b;
                    a2 += a * a;
                    b2 += b * b;
                }
                let cosine = f64::from(sum) / (f64::from(a2) * f64::from(b2)).sqrt();
                (1.0 + cosine as f32) / 2.0
            }
            Similarity::Euclidean => {
                let distance = pairs().fold(0.0_f32, |sum, (a, b)| sum + (a - b) * (a - b));
                1.0 / (1.0 + distance)
            }
            Similarity::DotProduct => (1.0 + dot(&mut pairs())) / 2.0,
        };
        Ok(Some(result.to_be_bytes().to_vec()))
    }
}

/// Is this what is wrong with the text of a duration? Cassandra's own parser says so as of a
/// request, wherever the text comes from.
fn is_of_duration(why: &str) -> bool {
    why.starts_with("Invalid duration") || why.ends_with(" to a duration")
}

/// The text of a value that CAST gives.
fn plain_text(ty: &CqlType, value: &[u8]) -> String {
    match ty {
        // digits in full, however many zeros that takes (`BigDecimal.toPlainString`)
        CqlType::Decimal => match Decimal::from_bytes(value) {
            Some(number) => number.to_string(),
            None => String::new(),
        },
        // what is there of a counter is its total
        CqlType::Counter => CqlType::BigInt.to_text(value),
        ty => ty.to_text(value),
    }
}

/// The partition key given by its columns; null if one of them is.
fn key_of(arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>, CqlError> {
    let values = arguments.iter().copied().collect::<Option<Vec<&[u8]>>>();
    values.map(|values| schema_key(&values)).transpose()
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
