//! All native functions by name.

use schema::{Release, Table};
use types::CqlType;

use crate::ast::Arithmetic;
use crate::error::CqlError;
use crate::term::function::aggregate::Aggregate;
use crate::term::function::argument::Argument;
use crate::term::function::mask::Mask;
use crate::term::function::number::{self, Math};
use crate::term::function::{Function, Similarity, Work};

/// The types that CAST gives, by name.
const CAST_TARGETS: [(&str, CqlType); 12] = [
    ("ascii", CqlType::Ascii),
    ("text", CqlType::Text),
    ("tinyint", CqlType::TinyInt),
    ("smallint", CqlType::SmallInt),
    ("int", CqlType::Int),
    ("bigint", CqlType::BigInt),
    ("float", CqlType::Float),
    ("double", CqlType::Double),
    ("decimal", CqlType::Decimal),
    ("varint", CqlType::VarInt),
    ("date", CqlType::Date),
    ("timestamp", CqlType::Timestamp),
];

/// The name of unary minus.
pub const NEGATE: &str = "_negate";

/// The hidden function behind an operator.
pub fn operator_name(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "_add",
        Arithmetic::Subtract => "_substract",
        Arithmetic::Multiply => "_multiply",
        Arithmetic::Divide => "_divide",
        Arithmetic::Modulo => "_modulo",
    }
}

/// The operator that a hidden function is behind.
pub fn operator_of(name: &str) -> Option<char> {
    let all = [
        (Arithmetic::Add, '+'),
        (Arithmetic::Subtract, '-'),
        (Arithmetic::Multiply, '*'),
        (Arithmetic::Divide, '/'),
        (Arithmetic::Modulo, '%'),
    ];
    all.into_iter().find(|(operator, _)| operator_name(*operator) == name).map(|(_, sign)| sign)
}

/// What a call is about: what functions that are made for it depend on.
pub struct Call<'c> {
    pub name: &'c str,
    pub arguments: &'c [&'c dyn Argument],
    /// The type of what takes the result, where that is known.
    pub receiver: Option<&'c CqlType>,
    /// The table, for `token`.
    pub table: Option<&'c Table>,
    /// The ring's release.
    pub release: Release,
}

impl Call<'_> {
    fn make(&self, arguments: &[CqlType], returns: &CqlType, work: Work) -> Function {
        Function {
            name: self.name.to_owned(),
            arguments: arguments.to_vec(),
            returns: returns.clone(),
            work,
            is_made: false,
        }
    }

    fn each(&self, arguments: &[CqlType], returns: &CqlType, work: Work) -> Vec<Function> {
        arguments.iter().map(|ty| self.make(std::slice::from_ref(ty), returns, work)).collect()
    }

    /// One overload of one argument a number type, the result of the same type.
    fn numbers(&self, work: Work) -> Vec<Function> {
        number::TYPES.iter().map(|ty| self.make(std::slice::from_ref(ty), ty, work)).collect()
    }

    /// All overloads of the name; none for a name that is no native function's.
    pub fn overloads(&self) -> Result<Vec<Function>, CqlError> {
        use CqlType as T;
        Ok(match self.name {
            "now" | "current_timeuuid" | "currenttimeuuid" => {
                vec![self.make(&[], &T::TimeUuid, Work::TimeUuidNow)]
            }
            "current_timestamp" | "currenttimestamp" => {
                vec![self.make(&[], &T::Timestamp, Work::TimestampNow)]
            }
            "current_date" | "currentdate" => vec![self.make(&[], &T::Date, Work::DateNow)],
            "current_time" | "currenttime" => vec![self.make(&[], &T::Time, Work::TimeNow)],
            "uuid" => vec![self.make(&[], &T::Uuid, Work::RandomUuid)],
            "min_timeuuid" | "mintimeuuid" => {
                self.each(&[T::Timestamp], &T::TimeUuid, Work::MinTimeUuid)
            }
            "max_timeuuid" | "maxtimeuuid" => {
                self.each(&[T::Timestamp], &T::TimeUuid, Work::MaxTimeUuid)
            }
            "to_date" | "todate" => self.each(&[T::TimeUuid, T::Timestamp], &T::Date, Work::ToDate),
            "to_timestamp" | "totimestamp" => {
                self.each(&[T::TimeUuid, T::Date], &T::Timestamp, Work::ToTimestamp)
            }
            "to_unix_timestamp" | "tounixtimestamp" => {
                self.each(&[T::TimeUuid, T::Timestamp, T::Date], &T::BigInt, Work::ToUnixTimestamp)
            }
            // both ended with 5.0
            "dateof" if self.release < Release::V5_0 => {
                self.each(&[T::TimeUuid], &T::Timestamp, Work::ToTimestamp)
            }
            "unixtimestampof" if self.release < Release::V5_0 => {
                self.each(&[T::TimeUuid], &T::BigInt, Work::ToUnixTimestamp)
            }
            "floor" => self.floors(),
            "token" => vec![self.token()],
            "abs" => self.numbers(Work::Math(Math::Abs)),
            "exp" => self.numbers(Work::Math(Math::Exp)),
            "log" => self.numbers(Work::Math(Math::Log)),
            "log10" => self.numbers(Work::Math(Math::Log10)),
            "round" => self.numbers(Work::Math(Math::Round)),
            NEGATE => self.numbers(Work::Negate),
            "_add" => self.operations(Arithmetic::Add),
            "_substract" => self.operations(Arithmetic::Subtract),
            "_multiply" => self.operations(Arithmetic::Multiply),
            "_divide" => self.operations(Arithmetic::Divide),
            "_modulo" => self.operations(Arithmetic::Modulo),
            "count" => vec![self.make(&[T::Blob], &T::BigInt, Work::Aggregate(Aggregate::Count))],
            "count_rows" | "countRows" => {
                vec![self.make(&[], &T::BigInt, Work::Aggregate(Aggregate::CountRows))]
            }
            "sum" => self.numbers(Work::Aggregate(Aggregate::Sum)),
            "avg" => self.numbers(Work::Aggregate(Aggregate::Avg)),
            "min"
            | "max"
            | "to_json"
            | "tojson"
            | "from_json"
            | "fromjson"
            | "map_keys"
            | "map_values"
            | "collection_count"
            | "collection_min"
            | "collection_max"
            | "collection_sum"
            | "collection_avg"
            | "mask_null"
            | "mask_default"
            | "mask_replace"
            | "mask_inner"
            | "mask_outer"
            | "mask_hash"
            | "similarity_cosine"
            | "similarity_euclidean"
            | "similarity_dot_product" => vec![self.made()?],
            other => match cast_target(other) {
                Some(target) => self.casts(target),
                None => blob_overloads(other)
                    .into_iter()
                    .map(|(from, to, work)| self.make(&[from], &to, work))
                    .collect(),
            },
        })
    }

    fn token(&self) -> Function {
        use CqlType as T;
        let key = |t: &Table| t.partition_key.iter().map(|c| c.ty.clone()).collect();
        let arguments: Vec<_> = self.table.map(key).unwrap_or_default();
        let (returns, work) = match self.table {
            Some(table) if table.is_ordered_by_key() => (table.token_type(), Work::KeyAsToken),
            _ => (T::BigInt, Work::Token),
        };
        let mut token = self.make(&arguments, &returns, work);
        token.is_made = true;
        token
    }

    fn floors(&self) -> Vec<Function> {
        use CqlType as T;
        let mut out = Vec::new();
        for (ty, start, result) in [
            (T::Timestamp, T::Timestamp, T::Timestamp),
            (T::TimeUuid, T::Timestamp, T::Timestamp),
            (T::Date, T::Date, T::Date),
        ] {
            out.push(self.make(&[ty.clone(), T::Duration], &result, Work::Floor));
            out.push(self.make(&[ty, T::Duration, start], &result, Work::Floor));
        }
        out.push(self.make(&[T::Time, T::Duration], &T::Time, Work::Floor));
        out
    }

    fn operations(&self, operator: Arithmetic) -> Vec<Function> {
        use CqlType as T;
        let mut out = Vec::new();
        for left in &number::TYPES {
            for right in &number::TYPES {
                let arguments = [left.clone(), right.clone()];
                let result = number::result_type(left, right);
                out.push(self.make(&arguments, &result, Work::Operate(operator)));
            }
        }
        if matches!(operator, Arithmetic::Add | Arithmetic::Subtract) {
            let work = Work::AddDuration(operator == Arithmetic::Subtract);
            for ty in [T::Timestamp, T::Date] {
                out.push(self.make(&[ty.clone(), T::Duration], &ty, work));
            }
        }
        if operator == Arithmetic::Add {
            for (left, right) in
                [(T::Text, T::Text), (T::Ascii, T::Ascii), (T::Ascii, T::Text), (T::Text, T::Ascii)]
            {
                let result = if left == right { left.clone() } else { T::Text };
                out.push(self.make(&[left, right], &result, Work::Concatenate));
            }
        }
        out
    }

    fn casts(&self, target: &CqlType) -> Vec<Function> {
        use CqlType as T;
        match target {
            T::Ascii | T::Text => {
                let mut out = self.numbers(Work::CastText);
                let texts =
                    [T::Inet, T::Boolean, T::TimeUuid, T::Timestamp, T::Date, T::Time, T::Uuid];
                out.iter_mut().for_each(|function| function.returns = target.clone());
                out.extend(self.each(&texts, target, Work::CastText));
                if *target == T::Text {
                    out.push(self.make(&[T::Ascii], target, Work::CastSame));
                }
                out
            }
            T::Date => self.each(&[T::TimeUuid, T::Timestamp], target, Work::CastDate),
            T::Timestamp => self.each(&[T::TimeUuid, T::Date], target, Work::CastTimestamp),
            target => {
                let sources: Vec<_> =
                    number::TYPES.iter().filter(|ty| *ty != target).cloned().collect();
                self.each(&sources, target, Work::CastNumber)
            }
        }
    }

    /// The overload made for the call's arguments (Cassandra's `FunctionFactory`).
    fn made(&self) -> Result<Function, CqlError> {
        let mut function = self.made_of_types()?;
        function.is_made = true;
        Ok(function)
    }

    fn made_of_types(&self) -> Result<Function, CqlError> {
        use CqlType as T;
        let name = self.name;
        let one = |parameter: Parameter| -> Result<T, CqlError> {
            Ok(self.infer(&[parameter], 1)?.swap_remove(0))
        };
        Ok(match name {
            "min" | "max" => {
                let ty = one(Parameter::Any { or_receiver: true })?;
                let work = if name == "min" { Aggregate::Min } else { Aggregate::Max };
                self.make(std::slice::from_ref(&ty), &ty, Work::Aggregate(work))
            }
            "to_json" | "tojson" => {
                let ty = one(Parameter::Any { or_receiver: false })?;
                self.make(&[ty], &T::Text, Work::ToJson)
            }
            "from_json" | "fromjson" => {
                one(Parameter::Fixed(&[T::Text]))?;
                let Some(receiver) = self.receiver else {
                    return Err(CqlError::invalid(format!(
                        "{name}() cannot be used in the selection clause of a SELECT statement"
                    )));
                };
                self.make(&[T::Text], receiver, Work::FromJson)
            }
            "map_keys" | "map_values" => {
                let ty = one(Parameter::Map)?;
                let T::Map { key, value, .. } = &ty else {
                    return Err(CqlError::invalid(format!("Function system.{name} wants a map")));
                };
                let (key, value) = (key.clone(), value.clone());
                let (result, work) = match name {
                    "map_keys" => (T::Set { element: key, frozen: true }, Work::MapKeys),
                    _ => (T::List { element: value, frozen: true }, Work::MapValues),
                };
                self.make(&[ty], &result, work)
            }
            "collection_count" => {
                let ty = one(Parameter::Collection)?;
                self.make(&[ty], &T::Int, Work::CountElements)
            }
            "collection_min" | "collection_max" | "collection_sum" | "collection_avg" => {
                let (work, parameter) = match name {
                    "collection_min" => (Aggregate::Min, Parameter::SetOrList),
                    "collection_max" => (Aggregate::Max, Parameter::SetOrList),
                    "collection_sum" => (Aggregate::Sum, Parameter::Numbers),
                    _ => (Aggregate::Avg, Parameter::Numbers),
                };
                let ty = one(parameter)?;
                let element = element_of(&ty).cloned().unwrap_or(T::Blob);
                self.make(&[ty], &element, Work::Fold(work))
            }
            "similarity_cosine" | "similarity_euclidean" | "similarity_dot_product" => {
                self.made_similarity()?
            }
            _ => self.made_mask()?,
        })
    }

    fn made_similarity(&self) -> Result<Function, CqlError> {
        let similarity = match self.name {
            "similarity_cosine" => Similarity::Cosine,
            "similarity_euclidean" => Similarity::Euclidean,
            _ => Similarity::DotProduct,
        };
        let types =
            self.infer(&[Parameter::Vector { other: 1 }, Parameter::Vector { other: 0 }], 2)?;
        let dimension = |ty: &CqlType| match ty {
            CqlType::Vector { dimension, .. } => Some(*dimension),
            _ => None,
        };
        match types.as_slice() {
            [left, right] if dimension(left).is_some() && dimension(left) == dimension(right) => {
                let arguments = [left.clone(), left.clone()];
                Ok(self.make(&arguments, &CqlType::Float, Work::Similarity(similarity)))
            }
            _ => Err(CqlError::invalid("All arguments must have the same vector dimensions")),
        }
    }

    fn made_mask(&self) -> Result<Function, CqlError> {
        use CqlType as T;
        let any = || Parameter::Any { or_receiver: false };
        let text = || Parameter::Fixed(&[T::Text]);
        let int = || Parameter::Fixed(&[T::Int]);
        let (mask, parameters, least) = match self.name {
            "mask_null" => (Mask::Null, vec![any()], 1),
            "mask_default" => (Mask::Default, vec![any()], 1),
            "mask_replace" => {
                (Mask::Replace, vec![Parameter::Any { or_receiver: true }, Parameter::AsFirst], 2)
            }
            "mask_hash" => (Mask::Hash, vec![any(), text()], 1),
            name => {
                let mask = if name == "mask_inner" { Mask::Inner } else { Mask::Outer };
                let string = Parameter::Fixed(&[T::Text, T::Ascii]);
                (mask, vec![string, int(), int(), text()], 3)
            }
        };
        let mut types = self.infer(&parameters, least)?;
        let first = types.first().cloned().unwrap_or(T::Blob);
        // what is not of the argument's own choice
        for (ty, parameter) in types.iter_mut().zip(&parameters).skip(1) {
            if let Parameter::Fixed([wanted, ..]) = parameter {
                *ty = wanted.clone();
            }
        }
        let returns = if mask == Mask::Hash { T::Blob } else { first };
        Ok(self.make(&types, &returns, Work::Mask(mask)))
    }

    /// The types of the arguments, each of its own or by what the parameter says.
    fn infer(&self, parameters: &[Parameter], least: usize) -> Result<Vec<CqlType>, CqlError> {
        let shown = || {
            let all = parameters.iter().enumerate();
            let all =
                all.map(|(at, p)| if at < least { p.shown() } else { format!("[{}]", p.shown()) });
            format!("system.{}({})", self.name, all.collect::<Vec<_>>().join(", "))
        };
        if !(least..=parameters.len()).contains(&self.arguments.len()) {
            return Err(CqlError::invalid(format!(
                "Invalid number of arguments for function {}",
                shown()
            )));
        }
        let pairs = || self.arguments.iter().zip(parameters);
        let first: Vec<Option<CqlType>> = pairs()
            .map(|(argument, parameter)| parameter.infer(*argument, self.receiver, &[]))
            .collect();
        let mut out = Vec::with_capacity(first.len());
        for ((argument, parameter), own) in pairs().zip(&first) {
            // the second look is for those that depend on others
            let is_settled = own.is_some() && !matches!(parameter, Parameter::AsFirst);
            let ty = match own.clone().filter(|_| is_settled) {
                None => parameter.infer(*argument, self.receiver, &first),
                own => own,
            };
            let ty = ty.ok_or_else(|| {
                CqlError::invalid(format!(
                    "Cannot infer type of argument {} in call to function {}: use type casts to disambiguate",
                    argument.text(),
                    shown()
                ))
            })?;
            if let Some(wanted) = parameter.refuses(&ty) {
                return Err(CqlError::invalid(format!(
                    "Function system.{} requires {wanted}, but found argument {} of type {ty}",
                    self.name,
                    argument.text()
                )));
            }
            out.push(ty);
        }
        Ok(out)
    }
}

/// What a made function asks of an argument.
enum Parameter {
    Any {
        or_receiver: bool,
    },
    /// Of the first of these types, or what can be taken for one of them.
    Fixed(&'static [CqlType]),
    /// Of the type of the first argument.
    AsFirst,
    Map,
    Collection,
    SetOrList,
    Numbers,
    /// A vector of floats, in doubt that of the other argument.
    Vector {
        other: usize,
    },
}

fn element_of(ty: &CqlType) -> Option<&CqlType> {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => Some(element),
        _ => None,
    }
}

impl Parameter {
    fn shown(&self) -> String {
        match self {
            Self::Any { .. } | Self::AsFirst => "any".to_owned(),
            Self::Fixed([CqlType::Text, CqlType::Ascii]) => "[text|varchar|ascii]".to_owned(),
            Self::Fixed(types) => types.iter().map(CqlType::cql_name).collect::<Vec<_>>().join("|"),
            Self::Map => "map".to_owned(),
            Self::Collection => "collection".to_owned(),
            Self::SetOrList | Self::Numbers => "numeric_set_or_list".to_owned(),
            Self::Vector { .. } => "vector<float, n>".to_owned(),
        }
    }

    fn infer(
        &self,
        argument: &dyn Argument,
        receiver: Option<&CqlType>,
        others: &[Option<CqlType>],
    ) -> Option<CqlType> {
        match self {
            Self::Any { or_receiver } => {
                argument.known_type().or_else(|| receiver.filter(|_| *or_receiver).cloned())
            }
            Self::Fixed(types) => argument.known_type().or_else(|| types.first().cloned()),
            Self::AsFirst => others
                .first()
                .cloned()
                .flatten()
                .or_else(|| argument.known_type())
                .or_else(|| receiver.cloned()),
            Self::Map | Self::Collection | Self::SetOrList | Self::Numbers => argument.known_type(),
            Self::Vector { other } => {
                if let Some(dimension) = argument.array_size() {
                    return Some(CqlType::Vector { element: CqlType::Float.into(), dimension });
                }
                let own = argument.known_type().or_else(|| receiver.cloned());
                own.or_else(|| others.get(*other).cloned().flatten())
            }
        }
    }

    /// What it asks for instead, if it is not this type.
    fn refuses(&self, ty: &CqlType) -> Option<String> {
        let wanted = match self {
            Self::Any { .. } | Self::AsFirst => return None,
            Self::Fixed(types) => {
                let fits = |wanted: &CqlType| {
                    crate::term::assignment::Assignment::of_types(wanted, ty).is_assignable()
                };
                if types.iter().any(fits) {
                    return None;
                }
                return Some(format!("an argument of type {}", self.shown()));
            }
            Self::Map if matches!(ty, CqlType::Map { .. } | CqlType::Udt { .. }) => return None,
            Self::Map => "a map",
            Self::Collection if ty.is_collection() => return None,
            Self::Collection => "a collection",
            Self::SetOrList if element_of(ty).is_some() => return None,
            Self::SetOrList => "a set or list",
            Self::Numbers if element_of(ty).is_some_and(number::is_number) => return None,
            Self::Numbers => "a numeric set/list",
            Self::Vector { .. } => match ty {
                CqlType::Vector { element, .. } if **element == CqlType::Float => return None,
                _ => "a float vector",
            },
        };
        Some(format!("{wanted} argument"))
    }
}

fn cast_target(name: &str) -> Option<&'static CqlType> {
    let wanted = match name.strip_prefix("cast_as_") {
        Some(ty) => ty.to_owned(),
        None => {
            let ty = name.strip_prefix("castAs")?;
            let is_capital = ty.starts_with(|first: char| first.is_ascii_uppercase());
            is_capital.then(|| ty.to_ascii_lowercase())?
        }
    };
    CAST_TARGETS.iter().find(|(name, _)| *name == wanted).map(|(_, ty)| ty)
}

fn blob_overloads(name: &str) -> Option<(CqlType, CqlType, Work)> {
    // a blob is one already; what is in quotes keeps its case, and is no type then
    let peer = |wanted: &str| {
        let found = CqlType::native(wanted).filter(|ty| *ty != CqlType::Blob);
        found.filter(|_| wanted.bytes().all(|byte| byte.is_ascii_lowercase()))
    };
    if let Some(ty) = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob")) {
        return Some((peer(ty)?, CqlType::Blob, Work::ToBlob));
    }
    let ty = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas"))?;
    Some((CqlType::Blob, peer(ty)?, Work::FromBlob))
}
