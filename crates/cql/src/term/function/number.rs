//! Arithmetic on numbers of all types, as Java does it: what overflows wraps, what is divided by
//! zero fails.

use num_bigint::BigInt;
use types::decimal_math::DecimalError;
use types::{CqlType, Decimal};

use crate::ast::Arithmetic;

/// A number of any type.
#[derive(Clone, Debug)]
pub enum Number {
    /// Of 8 to 64 bits.
    Whole(i64),
    Float(f32),
    Double(f64),
    Big(BigInt),
    Decimal(Decimal),
}

/// The functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    Abs,
    Exp,
    Log,
    Log10,
    Round,
}

/// The number types, in no order that matters.
pub const TYPES: [CqlType; 9] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::VarInt,
    CqlType::Counter,
];

/// Is this a type of numbers (a `NumberType`)?
pub fn is_number(ty: &CqlType) -> bool {
    TYPES.contains(ty)
}

/// The type of the result of an operation on two numbers: the wider of both, decimal if one is.
pub fn result_type(left: &CqlType, right: &CqlType) -> CqlType {
    let size = |ty: &CqlType| match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::BigInt | CqlType::Double | CqlType::Counter => 8,
        _ => u8::MAX,
    };
    let has_point =
        |ty: &CqlType| matches!(ty, CqlType::Float | CqlType::Double | CqlType::Decimal);
    match (has_point(left) || has_point(right), size(left).max(size(right))) {
        (true, 4) => CqlType::Float,
        (true, 8) => CqlType::Double,
        (true, _) => CqlType::Decimal,
        (false, 1) => CqlType::TinyInt,
        (false, 2) => CqlType::SmallInt,
        (false, 4) => CqlType::Int,
        (false, 8) => CqlType::BigInt,
        (false, _) => CqlType::VarInt,
    }
}

fn failed(error: &DecimalError) -> String {
    error.to_string()
}

impl Number {
    /// The number that a value is; none for the empty value.
    pub fn of(ty: &CqlType, value: &[u8]) -> Option<Self> {
        match ty {
            CqlType::Float => value.as_array().map(|bytes| Self::Float(f32::from_be_bytes(*bytes))),
            CqlType::Double => {
                value.as_array().map(|bytes| Self::Double(f64::from_be_bytes(*bytes)))
            }
            CqlType::VarInt => ty.as_bigint(value).map(Self::Big),
            CqlType::Decimal => Decimal::from_bytes(value).map(Self::Decimal),
            _ => ty.as_i64(value).map(Self::Whole),
        }
    }

    /// `Number.longValue`.
    fn to_i64(&self) -> Result<i64, String> {
        Ok(match self {
            Self::Whole(number) => *number,
            Self::Float(number) => *number as i64,
            Self::Double(number) => *number as i64,
            Self::Big(number) => {
                let number = Decimal { unscaled: number.clone(), scale: 0 };
                number.low_bits().map_err(|error| failed(&error))?
            }
            Self::Decimal(number) => number.low_bits().map_err(|error| failed(&error))?,
        })
    }

    /// `Number.intValue`, of which the shorter ones are the low bits.
    fn to_i32(&self) -> Result<i32, String> {
        Ok(match self {
            Self::Float(number) => *number as i32,
            Self::Double(number) => *number as i32,
            number => number.to_i64()? as i32,
        })
    }

    fn to_f32(&self) -> f32 {
        match self {
            Self::Whole(number) => *number as f32,
            Self::Float(number) => *number,
            Self::Double(number) => *number as f32,
            Self::Big(number) => number.to_string().parse().unwrap_or(f32::NAN),
            Self::Decimal(number) => number.to_string().parse().unwrap_or(f32::NAN),
        }
    }

    /// `Number.doubleValue`.
    pub fn to_f64(&self) -> f64 {
        match self {
            Self::Whole(number) => *number as f64,
            Self::Float(number) => (*number).into(),
            Self::Double(number) => *number,
            Self::Big(number) => number.to_string().parse().unwrap_or(f64::NAN),
            Self::Decimal(number) => number.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    fn to_big(&self) -> Result<BigInt, String> {
        match self {
            Self::Big(number) => Ok(number.clone()),
            number => number.to_i64().map(BigInt::from),
        }
    }

    /// As operands of decimal arithmetic: all but the exact types go through a `double`, and so
    /// have at least one digit behind the point.
    fn to_decimal(&self) -> Result<Decimal, String> {
        match self {
            Self::Decimal(number) => Ok(number.clone()),
            Self::Big(number) => Ok(Decimal { unscaled: number.clone(), scale: 0 }),
            number => {
                let number = number.to_f64();
                let what = if number.is_nan() { "A NaN" } else { "An infinite number" };
                Decimal::parse(&types::float::format_double(number))
                    .ok_or_else(|| format!("{what} cannot be converted into a decimal"))
            }
        }
    }

    /// CAST to a type of numbers.
    pub fn cast(&self, to: &CqlType) -> Result<Vec<u8>, String> {
        Ok(match to {
            CqlType::Decimal => match self {
                Self::Whole(number) => Decimal { unscaled: (*number).into(), scale: 0 }.to_bytes(),
                Self::Float(number) => Decimal::parse(&types::float::format_float(*number))
                    .ok_or("Character I is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark.")?
                    .to_bytes(),
                number => number.to_decimal()?.to_bytes(),
            },
            // through 64 bits, even from a decimal
            CqlType::VarInt => BigInt::from(self.to_i64()?).to_signed_bytes_be(),
            to => self.to_bytes(to)?,
        })
    }

    fn to_bytes(&self, ty: &CqlType) -> Result<Vec<u8>, String> {
        Ok(match ty {
            CqlType::TinyInt => (self.to_i32()? as i8).to_be_bytes().to_vec(),
            CqlType::SmallInt => (self.to_i32()? as i16).to_be_bytes().to_vec(),
            CqlType::Int => self.to_i32()?.to_be_bytes().to_vec(),
            CqlType::Float => self.to_f32().to_be_bytes().to_vec(),
            CqlType::Double => self.to_f64().to_be_bytes().to_vec(),
            CqlType::VarInt => self.to_big()?.to_signed_bytes_be(),
            CqlType::Decimal => self.to_decimal()?.to_bytes(),
            _ => self.to_i64()?.to_be_bytes().to_vec(),
        })
    }
}

/// What wraps around at the width of a type, computed in 64 bits.
fn wrapped(ty: &CqlType, number: i64) -> Vec<u8> {
    match ty {
        CqlType::TinyInt => (number as i8).to_be_bytes().to_vec(),
        CqlType::SmallInt => (number as i16).to_be_bytes().to_vec(),
        CqlType::Int => (number as i32).to_be_bytes().to_vec(),
        _ => number.to_be_bytes().to_vec(),
    }
}

/// An operation on two numbers.
pub fn operate(
    operator: Arithmetic,
    result: &CqlType,
    left: &Number,
    right: &Number,
) -> Result<Vec<u8>, String> {
    match result {
        CqlType::Float => {
            let (a, b) = (left.to_f32(), right.to_f32());
            let number = match operator {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
                Arithmetic::Modulo => a % b,
            };
            Ok(number.to_be_bytes().to_vec())
        }
        CqlType::Double => {
            let (a, b) = (left.to_f64(), right.to_f64());
            let number = match operator {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
                Arithmetic::Modulo => a % b,
            };
            Ok(number.to_be_bytes().to_vec())
        }
        CqlType::Decimal => {
            let (a, b) = (left.to_decimal()?, right.to_decimal()?);
            let number = match operator {
                Arithmetic::Add => a.add(&b),
                Arithmetic::Subtract => a.subtract(&b),
                Arithmetic::Multiply => a.multiply(&b),
                Arithmetic::Divide => a.divide(&b),
                Arithmetic::Modulo => a.remainder(&b),
            };
            number.map(|number| number.to_bytes()).map_err(|error| failed(&error))
        }
        CqlType::VarInt => {
            let (a, b) = (left.to_big()?, right.to_big()?);
            let by_zero = b == BigInt::ZERO;
            if by_zero && matches!(operator, Arithmetic::Divide | Arithmetic::Modulo) {
                return Err("BigInteger divide by zero".to_owned());
            }
            let number = match operator {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
                Arithmetic::Modulo => a % b,
            };
            Ok(number.to_signed_bytes_be())
        }
        ty => {
            let (a, b) = (left.to_i64()?, right.to_i64()?);
            if b == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::Modulo) {
                return Err("/ by zero".to_owned());
            }
            let number = match operator {
                Arithmetic::Add => a.wrapping_add(b),
                Arithmetic::Subtract => a.wrapping_sub(b),
                Arithmetic::Multiply => a.wrapping_mul(b),
                Arithmetic::Divide => a.wrapping_div(b),
                Arithmetic::Modulo => a.wrapping_rem(b),
            };
            Ok(wrapped(ty, number))
        }
    }
}

/// `-number`.
pub fn negate(ty: &CqlType, number: &Number) -> Result<Vec<u8>, String> {
    Ok(match number {
        Number::Whole(number) => wrapped(ty, number.wrapping_neg()),
        Number::Float(number) => (-number).to_be_bytes().to_vec(),
        Number::Double(number) => (-number).to_be_bytes().to_vec(),
        Number::Big(number) => (-number).to_signed_bytes_be(),
        Number::Decimal(number) => number.negate().to_bytes(),
    })
}

/// `Math.round`: halves go up, NaN is nothing, and the ends of the integers are the ends.
fn round_half_up(number: f64) -> f64 {
    let floor = number.floor();
    if number - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// A function of one number, the result of the same type.
pub fn compute(math: Math, ty: &CqlType, number: &Number) -> Result<Vec<u8>, String> {
    let of_double = |number: f64| match math {
        Math::Abs => number.abs(),
        Math::Exp => number.exp(),
        // Java's has the sign that processors give it
        Math::Log | Math::Log10 if number < 0.0 => -f64::NAN.abs(),
        Math::Log => number.ln(),
        Math::Log10 => number.log10(),
        Math::Round => round_half_up(number),
    };
    Ok(match number {
        Number::Whole(number) => match math {
            Math::Abs => wrapped(ty, number.wrapping_abs()),
            Math::Round => wrapped(ty, *number),
            // a cast of a double to a short integer goes through 32 bits
            _ => Number::Double(of_double(*number as f64)).to_bytes(ty)?,
        },
        Number::Float(number) => match math {
            Math::Abs => number.abs(),
            Math::Round => round_half_up((*number).into()) as i32 as f32,
            _ => of_double((*number).into()) as f32,
        }
        .to_be_bytes()
        .to_vec(),
        Number::Double(number) => match math {
            Math::Round => round_half_up(*number) as i64 as f64,
            _ => of_double(*number),
        }
        .to_be_bytes()
        .to_vec(),
        Number::Big(number) => {
            let decimal = || Decimal { unscaled: number.clone(), scale: 0 };
            let whole = |number: Result<Decimal, DecimalError>| {
                number.and_then(|number| number.to_integer()).map_err(|error| failed(&error))
            };
            match math {
                Math::Abs => BigInt::from(number.magnitude().clone()),
                Math::Exp => whole(decimal().exp())?,
                Math::Log => whole(decimal().log())?,
                Math::Log10 => whole(decimal().log10())?,
                Math::Round => number.clone(),
            }
            .to_signed_bytes_be()
        }
        Number::Decimal(number) => match math {
            Math::Abs => Ok(number.abs()),
            Math::Exp => number.exp(),
            Math::Log => number.log(),
            Math::Log10 => number.log10(),
            Math::Round => number.round(),
        }
        .map_err(|error| failed(&error))?
        .to_bytes(),
    })
}
