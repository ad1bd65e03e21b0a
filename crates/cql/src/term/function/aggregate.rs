//! Aggregates: state machines that take one value after another and hold no more than a value each.

use num_bigint::BigInt;
use types::{CqlType, Decimal};

use crate::error::CqlError;
use crate::term::function::number::Number;

/// What an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Rows.
    CountRows,
    /// Values that are not null.
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

/// An aggregate on its way.
#[derive(Clone, Debug)]
pub enum State {
    Count(i64),
    /// The least or greatest value up to now.
    Extreme {
        ty: CqlType,
        is_max: bool,
        value: Option<Box<[u8]>>,
    },
    /// The sum of whole numbers, which wraps at the width of their type.
    Sum {
        ty: CqlType,
        sum: i64,
    },
    /// The average of whole numbers of up to 64 bits; the sum of 2^63 of them fits.
    Average {
        ty: CqlType,
        sum: i128,
        count: i64,
    },
    /// The sum of numbers with a point, or their average.
    Floating {
        ty: CqlType,
        sum: Compensated,
        average: Option<Average>,
    },
    BigSum {
        sum: BigInt,
        count: Option<u32>,
    },
    DecimalSum(Decimal),
    DecimalAverage {
        average: Decimal,
        count: u32,
    },
}

/// A sum after Kahan, done just as Cassandra does it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compensated {
    sum: f64,
    compensation: f64,
    simple: f64,
}

/// What an average needs beside the sum.
#[derive(Clone, Debug, Default)]
pub struct Average {
    count: u32,
    /// The sum, from where it left the range of a double.
    big: Option<Decimal>,
}

impl Compensated {
    fn add(&mut self, number: f64) {
        self.simple += number;
        let wanted = number - self.compensation;
        let rounded = self.sum + wanted;
        self.compensation = (rounded - self.sum) - wanted;
        self.sum = rounded;
    }

    fn total(&self) -> f64 {
        let total = self.sum + self.compensation;
        // infinities of one sign make a NaN on their way through the compensation
        if total.is_nan() && self.simple.is_infinite() { self.simple } else { total }
    }
}

fn decimal(number: f64) -> Option<Decimal> {
    Decimal::parse(&types::float::format_double(number))
}

fn zero() -> Decimal {
    Decimal { unscaled: BigInt::ZERO, scale: 0 }
}

fn failed(error: impl std::fmt::Display) -> CqlError {
    CqlError::invalid(error.to_string())
}

/// The bytes of a whole number at the width of a type, wrapped around.
fn whole(ty: &CqlType, number: i64) -> Vec<u8> {
    match ty {
        CqlType::TinyInt => (number as i8).to_be_bytes().to_vec(),
        CqlType::SmallInt => (number as i16).to_be_bytes().to_vec(),
        CqlType::Int => (number as i32).to_be_bytes().to_vec(),
        _ => number.to_be_bytes().to_vec(),
    }
}

impl State {
    /// Before the first value.
    pub fn new(aggregate: Aggregate, ty: &CqlType) -> Self {
        // Counters have no order of their own: their extremes are those of numbers.
        let ty = if *ty == CqlType::Counter { CqlType::BigInt } else { ty.clone() };
        match (aggregate, &ty) {
            (Aggregate::CountRows | Aggregate::Count, _) => Self::Count(0),
            (Aggregate::Min, _) => Self::Extreme { ty, is_max: false, value: None },
            (Aggregate::Max, _) => Self::Extreme { ty, is_max: true, value: None },
            (Aggregate::Sum, CqlType::Float | CqlType::Double) => {
                Self::Floating { ty, sum: Compensated::default(), average: None }
            }
            (Aggregate::Avg, CqlType::Float | CqlType::Double) => {
                let average = Some(Average::default());
                Self::Floating { ty, sum: Compensated::default(), average }
            }
            (Aggregate::Sum, CqlType::VarInt) => Self::BigSum { sum: BigInt::ZERO, count: None },
            (Aggregate::Avg, CqlType::VarInt) => Self::BigSum { sum: BigInt::ZERO, count: Some(0) },
            (Aggregate::Sum, CqlType::Decimal) => Self::DecimalSum(zero()),
            (Aggregate::Avg, CqlType::Decimal) => {
                Self::DecimalAverage { average: zero(), count: 0 }
            }
            (Aggregate::Sum, _) => Self::Sum { ty, sum: 0 },
            (Aggregate::Avg, _) => Self::Average { ty, sum: 0, count: 0 },
        }
    }

    /// Takes a value in; counting rows is taking one that is not null.
    pub fn add(&mut self, value: Option<&[u8]>) -> Result<(), CqlError> {
        let Some(given) = value else { return Ok(()) };
        match self {
            Self::Count(count) => *count += 1,
            Self::Extreme { ty, is_max, value } => {
                let better = match value {
                    None => true,
                    Some(best) => match ty.compare(best, given) {
                        std::cmp::Ordering::Less => *is_max,
                        std::cmp::Ordering::Greater => !*is_max,
                        std::cmp::Ordering::Equal => false,
                    },
                };
                if better {
                    *value = Some(given.into());
                }
            }
            // the empty value of a number is no number
            Self::Sum { ty, sum } => {
                *sum = sum.wrapping_add(ty.as_i64(given).unwrap_or_default());
            }
            Self::Average { ty, sum, count } => {
                if let Some(number) = ty.as_i64(given) {
                    *sum += i128::from(number);
                    *count += 1;
                }
            }
            Self::Floating { ty, sum, average } => {
                let Some(number) = Number::of(ty, given) else { return Ok(()) };
                let number = number.to_f64();
                match average {
                    None => sum.add(number),
                    Some(average) => average.add(sum, number)?,
                }
            }
            Self::BigSum { sum, count } => {
                if let Some(number) = CqlType::VarInt.as_bigint(given) {
                    *sum += number;
                    *count = count.map(|count| count.saturating_add(1));
                }
            }
            Self::DecimalSum(sum) => {
                if let Some(number) = Decimal::from_bytes(given) {
                    *sum = sum.sum(&number).map_err(failed)?;
                }
            }
            Self::DecimalAverage { average, count } => {
                if let Some(number) = Decimal::from_bytes(given) {
                    *count = count.saturating_add(1);
                    *average = average.average_with(&number, *count).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Does [`Self::merge`] give what adding all values one after the other does?
    pub fn merges(&self) -> bool {
        !matches!(self, Self::Floating { .. } | Self::DecimalSum(_) | Self::DecimalAverage { .. })
    }

    /// Takes in what another has of values that come after these.
    pub fn merge(&mut self, other: Self) -> Result<(), CqlError> {
        match (self, other) {
            (Self::Count(count), Self::Count(more)) => *count += more,
            (this @ Self::Extreme { .. }, Self::Extreme { value, .. }) => {
                return this.add(value.as_deref());
            }
            (Self::Sum { sum, .. }, Self::Sum { sum: more, .. }) => *sum = sum.wrapping_add(more),
            (
                Self::Average { sum, count, .. },
                Self::Average { sum: more, count: more_count, .. },
            ) => {
                *sum += more;
                *count += more_count;
            }
            (Self::BigSum { sum, count }, Self::BigSum { sum: more, count: more_count }) => {
                *sum += more;
                *count = count.map(|count| count.saturating_add(more_count.unwrap_or(0)));
            }
            // never asked to: see `merges`
            _ => return Err(CqlError::invalid("These aggregates do not merge")),
        }
        Ok(())
    }

    /// The result.
    pub fn value(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Count(count) => count.to_be_bytes().to_vec(),
            Self::Extreme { value, .. } => return value.as_deref().map(<[u8]>::to_vec),
            Self::Sum { ty, sum } => whole(ty, *sum),
            Self::Average { ty, sum, count } => {
                let average = sum.checked_div((*count).into()).unwrap_or(0);
                whole(ty, average as i64)
            }
            Self::Floating { ty, sum, average } => {
                let number = match average {
                    None => sum.total(),
                    Some(average) => average.value(sum),
                };
                match ty {
                    CqlType::Float => (number as f32).to_be_bytes().to_vec(),
                    _ => number.to_be_bytes().to_vec(),
                }
            }
            Self::BigSum { sum, count } => match count {
                None | Some(1) => sum.to_signed_bytes_be(),
                Some(0) => BigInt::ZERO.to_signed_bytes_be(),
                Some(count) => (sum / *count).to_signed_bytes_be(),
            },
            Self::DecimalSum(sum) => sum.to_bytes(),
            Self::DecimalAverage { average, .. } => average.to_bytes(),
        })
    }
}

impl Average {
    fn add(&mut self, sum: &mut Compensated, number: f64) -> Result<(), CqlError> {
        let no_decimal = || CqlError::invalid("NumberFormatException");
        self.count = self.count.saturating_add(1);
        if let Some(big) = &mut self.big {
            *big = big.sum(&decimal(number).ok_or_else(no_decimal)?).map_err(failed)?;
            return Ok(());
        }
        let before = sum.sum;
        sum.add(number);
        if sum.sum.is_infinite() && !number.is_infinite() {
            let before = decimal(before).ok_or_else(no_decimal)?;
            let number = decimal(number).ok_or_else(no_decimal)?;
            self.big = Some(before.sum(&number).map_err(failed)?);
        }
        Ok(())
    }

    fn value(&self, sum: &Compensated) -> f64 {
        match &self.big {
            _ if self.count == 0 => 0.0,
            Some(big) => big.divide_by_count(self.count).to_string().parse().unwrap_or(f64::NAN),
            None => sum.total() / f64::from(self.count),
        }
    }
}
