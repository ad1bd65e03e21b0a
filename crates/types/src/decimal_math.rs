//! Arithmetic of decimals, each result with the digits and the scale that `BigDecimal` and
//! Cassandra's `DecimalType` give it.

use num_bigint::{BigInt, Sign};
use thiserror::Error;

use crate::decimal::Decimal;

/// Digits of a sum, difference or product at the most; what is more is rounded.
pub const MAX_PRECISION: u32 = 10_000;
/// Digits of a quotient, of an exponential and of logarithms, if the operands have no more.
const LEAST_PRECISION: u32 = 32;
/// Digits behind the point of a quotient at the most.
const MAX_QUOTIENT_SCALE: i64 = 1000;
/// Places by which an operand is shifted at the most. Java has no such bound, and runs out of
/// memory.
const MAX_SHIFT: i64 = 200_000;
/// Digits of a logarithm that a double is good for.
const SHORT_DIGITS: u32 = 14;
/// Digits that are computed beyond those asked for.
const GUARD_DIGITS: u32 = 12;

/// Why there is no result.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecimalError {
    /// A divisor is zero.
    #[error("Division by zero")]
    DivisionByZero,
    /// The exponent of the result does not fit.
    #[error("Overflow")]
    Overflow,
    /// A logarithm of nothing or less.
    #[error("{0} of number zero or less")]
    Logarithm(&'static str),
}

#[derive(Clone, Copy)]
enum Rounding {
    Down,
    HalfUp,
    HalfEven,
}

fn power_of_ten(exponent: i64) -> Result<BigInt, DecimalError> {
    match u32::try_from(exponent) {
        Ok(exponent) if i64::from(exponent) <= MAX_SHIFT => Ok(BigInt::from(10).pow(exponent)),
        _ => Err(DecimalError::Overflow),
    }
}

fn divide(dividend: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    let twice: BigInt = (&rest * 2_u8).magnitude().clone().into();
    let up = match (rounding, twice.cmp(&BigInt::from(divisor.magnitude().clone()))) {
        (Rounding::Down, _) => false,
        (_, std::cmp::Ordering::Less) => false,
        (_, std::cmp::Ordering::Greater) => true,
        (Rounding::HalfUp, _) => true,
        (Rounding::HalfEven, _) => quotient.bit(0),
    };
    match (up, dividend.sign() == divisor.sign()) {
        (false, _) => quotient,
        (true, true) => quotient + 1,
        (true, false) => quotient - 1,
    }
}

impl Decimal {
    fn of(unscaled: BigInt, scale: i64) -> Result<Self, DecimalError> {
        let scale = i32::try_from(scale).map_err(|_| DecimalError::Overflow)?;
        Ok(Self { unscaled, scale })
    }

    fn is_zero(&self) -> bool {
        self.unscaled.sign() == Sign::NoSign
    }

    /// The number of digits; one for zero.
    fn precision(&self) -> i64 {
        // log10(2) lies between 0.30102 and 0.30103: short numbers need no text
        let bits = self.unscaled.bits().cast_signed();
        let (low, high) = ((bits - 1).max(0) * 30_102 / 100_000 + 1, bits * 30_103 / 100_000 + 1);
        if low == high {
            return low;
        }
        i64::try_from(self.unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX)
    }

    /// Rounds to so many digits.
    fn round_to(self, precision: u32, rounding: Rounding) -> Result<Self, DecimalError> {
        let mut this = self;
        loop {
            let dropped = this.precision() - i64::from(precision);
            if dropped <= 0 {
                return Ok(this);
            }
            let unscaled = divide(&this.unscaled, &power_of_ten(dropped)?, rounding);
            this = Self::of(unscaled, i64::from(this.scale) - dropped)?;
        }
    }

    /// The same number with another scale; digits that this would drop are rounded away.
    fn with_scale(&self, scale: i64, rounding: Rounding) -> Result<Self, DecimalError> {
        let more = scale - i64::from(self.scale);
        if self.is_zero() {
            return Self::of(BigInt::ZERO, scale);
        }
        let unscaled = if more >= 0 {
            &self.unscaled * power_of_ten(more)?
        } else if -more > self.precision() + 1 {
            BigInt::ZERO
        } else {
            divide(&self.unscaled, &power_of_ten(-more)?, rounding)
        };
        Self::of(unscaled, scale)
    }

    /// Takes zeros off the end while the scale is greater than this one.
    fn strip_zeros(mut self, scale: i64) -> Self {
        let ten = BigInt::from(10);
        while i64::from(self.scale) > scale {
            let rest = &self.unscaled % &ten;
            if rest.sign() != Sign::NoSign || self.is_zero() {
                break;
            }
            self.unscaled /= &ten;
            self.scale -= 1;
        }
        self
    }

    /// The exact sum, as `BigDecimal.add` without a limit.
    pub fn sum(&self, other: &Self) -> Result<Self, DecimalError> {
        let scale = i64::from(self.scale.max(other.scale));
        let (left, right) =
            (self.with_scale(scale, Rounding::Down)?, other.with_scale(scale, Rounding::Down)?);
        Self::of(left.unscaled + right.unscaled, scale)
    }

    /// The sum of at most [`MAX_PRECISION`] digits.
    pub fn add(&self, other: &Self) -> Result<Self, DecimalError> {
        let preferred = i64::from(self.scale.max(other.scale));
        match (self.is_zero(), other.is_zero()) {
            (false, false) => {}
            (true, true) => return Self::of(BigInt::ZERO, preferred),
            (is_left_zero, _) => {
                let kept = if is_left_zero { other } else { self };
                let kept = kept.clone().round_to(MAX_PRECISION, Rounding::HalfUp)?;
                let scale = i64::from(kept.scale);
                if scale > preferred {
                    return Ok(kept.strip_zeros(preferred));
                }
                let room = i64::from(MAX_PRECISION) - kept.precision();
                return kept.with_scale(preferred.min(scale + room), Rounding::Down);
            }
        }
        let (big, small) = if self.scale <= other.scale { (self, other) } else { (other, self) };
        // A number far below the last digit of the result only says which way that is rounded.
        let last = i64::from(big.scale) - big.precision() + i64::from(MAX_PRECISION);
        let highest = i64::from(small.scale) - small.precision() + 1;
        if highest > i64::from(big.scale) + 2 && highest > last + 2 {
            let unit = BigInt::from(if small.unscaled.sign() == Sign::Minus { -1 } else { 1 });
            let small = Self::of(unit, i64::from(big.scale).max(last) + 3)?;
            return big.sum(&small)?.round_to(MAX_PRECISION, Rounding::HalfUp);
        }
        self.sum(other)?.round_to(MAX_PRECISION, Rounding::HalfUp)
    }

    /// The difference, as [`Self::add`].
    pub fn subtract(&self, other: &Self) -> Result<Self, DecimalError> {
        self.add(&other.negate())
    }

    /// The product of at most [`MAX_PRECISION`] digits.
    pub fn multiply(&self, other: &Self) -> Result<Self, DecimalError> {
        let scale = i64::from(self.scale) + i64::from(other.scale);
        Self::of(&self.unscaled * &other.unscaled, scale)?.round_to(MAX_PRECISION, Rounding::HalfUp)
    }

    /// The quotient as the operator `/` has it: 32 digits or what the operands have, without zeros
    /// at the end.
    pub fn divide(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let places = |number: &Self| number.precision() - i64::from(number.scale);
        let scale = (i64::from(LEAST_PRECISION) - (places(self) - places(other)))
            .max(self.scale.into())
            .max(other.scale.into())
            .max(LEAST_PRECISION.into())
            .min(MAX_QUOTIENT_SCALE);
        let quotient = self.divide_to_scale(other, scale, Rounding::HalfUp)?;
        if quotient.is_zero() {
            return Ok(Self { unscaled: BigInt::ZERO, scale: 0 });
        }
        Ok(quotient.strip_zeros(i32::MIN.into()))
    }

    fn divide_to_scale(
        &self,
        other: &Self,
        scale: i64,
        rounding: Rounding,
    ) -> Result<Self, DecimalError> {
        let shift = scale - (i64::from(self.scale) - i64::from(other.scale));
        if self.is_zero() || -shift > self.precision() + 1 {
            return Self::of(BigInt::ZERO, scale);
        }
        let unscaled = if shift >= 0 {
            divide(&(&self.unscaled * power_of_ten(shift)?), &other.unscaled, rounding)
        } else {
            divide(&self.unscaled, &(&other.unscaled * power_of_ten(-shift)?), rounding)
        };
        Self::of(unscaled, scale)
    }

    /// Takes this average of `count - 1` numbers to that of `count`, `number` being the last
    /// (`avg + (number - avg) / count`, each step rounded as Cassandra's aggregate does).
    pub fn average_with(&self, number: &Self, count: u32) -> Result<Self, DecimalError> {
        let difference = number.sum(&self.negate())?;
        let count = BigInt::from(count.max(1));
        let unscaled = divide(&difference.unscaled, &count, Rounding::HalfEven);
        self.sum(&Self { unscaled, scale: difference.scale })
    }

    /// A sum divided by a count, with the scale of the sum.
    pub fn divide_by_count(&self, count: u32) -> Self {
        let count = BigInt::from(count.max(1));
        Self { unscaled: divide(&self.unscaled, &count, Rounding::HalfEven), scale: self.scale }
    }

    /// What is left of an integral division, of the sign of `self`.
    pub fn remainder(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let preferred = i64::from(self.scale) - i64::from(other.scale);
        let quotient = self.divide_to_scale(other, 0, Rounding::Down)?;
        let quotient = if quotient.is_zero() {
            Self { unscaled: BigInt::ZERO, scale: 0 }
        } else {
            quotient.strip_zeros(preferred.min(0))
        };
        let scale = if preferred >= 0 || quotient.is_zero() {
            i64::from(self.scale)
        } else {
            i64::from(quotient.scale) + i64::from(other.scale)
        };
        let taken = &quotient.unscaled * &other.unscaled;
        let taken = Self::of(taken, i64::from(quotient.scale) + i64::from(other.scale))?;
        let rest = if taken.is_zero() { self.clone() } else { self.sum(&taken.negate())? };
        rest.with_scale(scale.max(self.scale.into()), Rounding::Down)
    }

    /// The number with the other sign.
    pub fn negate(&self) -> Self {
        Self { unscaled: -&self.unscaled, scale: self.scale }
    }

    /// The number without its sign.
    pub fn abs(&self) -> Self {
        Self { unscaled: self.unscaled.magnitude().clone().into(), scale: self.scale }
    }

    /// The nearest whole number, halves away from zero.
    pub fn round(&self) -> Result<Self, DecimalError> {
        self.with_scale(0, Rounding::HalfUp)
    }

    /// The low 64 bits of the whole part.
    pub fn low_bits(&self) -> Result<i64, DecimalError> {
        // so many factors of ten leave nothing there
        if self.scale <= -64 {
            return Ok(0);
        }
        let bytes = self.to_integer()?.to_signed_bytes_le();
        let sign = if bytes.last().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
        let mut low = [sign; 8];
        low.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
        Ok(i64::from_le_bytes(low))
    }

    /// The whole part.
    pub fn to_integer(&self) -> Result<BigInt, DecimalError> {
        Ok(self.with_scale(0, Rounding::Down)?.unscaled)
    }

    /// How many digits `exp` and the logarithms give.
    fn working_precision(&self) -> u32 {
        let precision = u32::try_from(self.precision()).unwrap_or(MAX_PRECISION);
        precision.clamp(LEAST_PRECISION, MAX_PRECISION)
    }

    /// The number times `10^digits`, rounded down.
    fn fixed(&self, digits: u32) -> Result<BigInt, DecimalError> {
        Ok(self.with_scale(digits.into(), Rounding::Down)?.unscaled)
    }

    /// `e` to the power of the number.
    pub fn exp(&self) -> Result<Self, DecimalError> {
        let precision = self.working_precision();
        if self.is_zero() {
            return Ok(Self { unscaled: BigInt::from(1), scale: 0 });
        }
        // beyond that the exponent is no 32-bit number
        if self.precision() - i64::from(self.scale) > 10 {
            return Err(DecimalError::Overflow);
        }
        let digits = precision + GUARD_DIGITS + 10;
        let number = self.fixed(digits)?;
        let ten = ln_of_ten(digits);
        let exponent = divide(&number, &ten, Rounding::HalfEven);
        let rest = number - &exponent * ten;
        let exponent = i64::try_from(&exponent).map_err(|_| DecimalError::Overflow)?;
        let scale = i64::from(digits) - exponent;
        Self::of(exp_fixed(&rest, digits), scale)?.round_to(precision, Rounding::HalfEven)
    }

    /// The natural logarithm.
    pub fn log(&self) -> Result<Self, DecimalError> {
        if self.unscaled.sign() != Sign::Plus {
            return Err(DecimalError::Logarithm("Natural log"));
        }
        let precision = self.working_precision();
        let digits = precision + GUARD_DIGITS;
        self.log_fixed(digits)?.round_to(precision, Rounding::HalfEven)
    }

    /// The logarithm to the base ten.
    pub fn log10(&self) -> Result<Self, DecimalError> {
        if self.unscaled.sign() != Sign::Plus {
            return Err(DecimalError::Logarithm("Log10"));
        }
        let precision = self.working_precision();
        // a quotient of two logarithms of two more digits: in Java it comes out even for some
        // powers of ten only
        let digits = precision + 2 + GUARD_DIGITS;
        let number = self.log_fixed(digits)?.round_to(precision + 2, Rounding::HalfEven)?;
        let ten = Self::of(ln_of_ten(digits), digits.into())?;
        let ten = ten.round_to(precision + 2, Rounding::HalfEven)?;
        number.divide_to_precision(&ten, precision + 2)?.round_to(precision, Rounding::HalfEven)
    }

    /// The quotient of so many digits; one that comes out even has no zeros at its end that it can
    /// do without.
    fn divide_to_precision(&self, other: &Self, precision: u32) -> Result<Self, DecimalError> {
        let preferred = i64::from(self.scale) - i64::from(other.scale);
        if self.is_zero() {
            return Self::of(BigInt::ZERO, preferred);
        }
        let shift = (i64::from(precision) + 2 + other.precision() - self.precision()).max(0);
        let dividend = &self.unscaled * power_of_ten(shift)?;
        let (quotient, rest) = (&dividend / &other.unscaled, &dividend % &other.unscaled);
        let scale = preferred + shift;
        if rest.sign() == Sign::NoSign {
            let quotient = Self::of(quotient, scale)?.round_to(precision, Rounding::HalfEven)?;
            return Ok(quotient.strip_zeros(preferred));
        }
        // a digit more says that something follows
        let sign = if quotient.sign() == Sign::Minus { -1 } else { 1 };
        Self::of(quotient * 10 + sign, scale + 1)?.round_to(precision, Rounding::HalfEven)
    }

    /// The natural logarithm of a positive number, to more than so many significant digits.
    fn log_fixed(&self, digits: u32) -> Result<Self, DecimalError> {
        // mantissa * 10^exponent, the mantissa between 0.1 and 10: near 1 nothing is taken apart,
        // so that the digits of a small logarithm stay
        let places = self.precision() - i64::from(self.scale);
        let is_near_one = (0..=1).contains(&places);
        let exponent = if is_near_one { 0 } else { places };
        let scale = i64::from(self.scale) + exponent;
        let mantissa = Self { unscaled: self.unscaled.clone(), scale: 0 };
        let mantissa = Self::of(mantissa.unscaled, scale)?;
        // digits that cancel where the number is close to one
        let one = Self { unscaled: BigInt::from(1), scale: 0 };
        let distance = mantissa.sum(&one.negate())?;
        if distance.is_zero() && exponent == 0 {
            return Ok(Self { unscaled: BigInt::ZERO, scale: 0 });
        }
        let lost = i64::from(distance.scale) - distance.precision();
        let extra = u32::try_from(lost.clamp(0, i64::from(MAX_PRECISION))).unwrap_or(0);
        let digits = digits + extra + 10;
        let logarithm = ln_fixed(&mantissa.fixed(digits)?, digits);
        Self::of(logarithm + ln_of_ten(digits) * exponent, digits.into())
    }
}

/// `e^x`, both times `10^digits`; the number is small.
fn exp_fixed(number: &BigInt, digits: u32) -> BigInt {
    // halved often enough, the series is short; each doubling back costs a bit
    let halvings = 8 + digits.isqrt();
    let digits_more = digits + halvings / 3 + 2;
    let one = BigInt::from(10).pow(digits_more);
    let number = (number * BigInt::from(10).pow(digits_more - digits)) >> halvings;
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0_u32);
    while term.magnitude().bits() > 1 {
        n += 1;
        term = term * &number / &one / n;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &one;
    }
    sum / BigInt::from(10).pow(digits_more - digits)
}

/// `ln x`, both times `10^digits`, for `x` between 0.05 and 10: Newton's steps from the nearest
/// double, each with three times the digits of the one before.
fn ln_fixed(number: &BigInt, digits: u32) -> BigInt {
    let start = if digits > 3 * SHORT_DIGITS {
        let low = digits / 3 + 5;
        let scale = BigInt::from(10).pow(digits - low);
        ln_fixed(&(number / &scale), low) * scale
    } else {
        let scale = BigInt::from(10).pow(digits.saturating_sub(17));
        let unit = 10_f64.powi(digits.min(17).cast_signed());
        let short = i64::try_from(&(number / &scale)).unwrap_or(i64::MAX) as f64;
        let start = BigInt::from(((short / unit).ln() * unit) as i64) * scale;
        newton(number, start, digits)
    };
    newton(number, start, digits)
}

/// A step towards the logarithm: three times as many digits of it are right after it.
fn newton(number: &BigInt, logarithm: BigInt, digits: u32) -> BigInt {
    let power = exp_fixed(&logarithm, digits);
    let step = (number - &power) * 2_u8 * BigInt::from(10).pow(digits) / (number + &power);
    logarithm + step
}

/// `ln 10` times `10^digits`.
fn ln_of_ten(digits: u32) -> BigInt {
    let digits_more = digits + 5;
    let one = BigInt::from(10).pow(digits_more);
    let inverse_tanh = |of: u32| {
        let square = of * of;
        let mut power = &one / of;
        let (mut sum, mut n) = (BigInt::ZERO, 1_u32);
        while power.sign() != Sign::NoSign {
            sum += &power / n;
            power /= square;
            n += 2;
        }
        sum
    };
    let logarithm = inverse_tanh(31) * 46 + inverse_tanh(49) * 34 + inverse_tanh(161) * 20;
    logarithm / BigInt::from(10).pow(5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    fn shown(result: Result<Decimal, DecimalError>) -> String {
        match result {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sums_and_products_keep_the_scales_of_java() {
        assert_eq!(shown(number("1.50").add(&number("2.5"))), "4.00");
        assert_eq!(shown(number("0.00").add(&number("2"))), "2.00");
        assert_eq!(shown(number("1.20").multiply(&number("3.0"))), "3.600");
        assert_eq!(shown(number("1").subtract(&number("1.00"))), "0.00");
        // a number far below the last digit
        let far = number("1E+20000").add(&number("1")).unwrap();
        assert_eq!((far.precision(), far.scale), (10_000, -10_001));
        assert_eq!(shown(number("1E+2000000000").sum(&number("1"))), "Overflow");
        assert_eq!(shown(number("1E+2000000000").multiply(&number("1E+2000000000"))), "Overflow");
    }

    #[test]
    fn quotients_have_32_digits() {
        assert_eq!(shown(number("123.456").divide(&number("3.0"))), "41.152");
        assert_eq!(
            shown(number("-0.5").divide(&number("3.0"))),
            "-0.166666666666666666666666666666667"
        );
        assert_eq!(shown(number("1000").divide(&number("10"))), "1E+2");
        assert_eq!(shown(number("0.00").divide(&number("7"))), "0");
        assert_eq!(shown(number("1").divide(&number("0.0"))), "Division by zero");
        assert_eq!(shown(number("1E-2000000000").divide(&number("3"))), "0");
    }

    #[test]
    fn remainders_keep_the_scales_of_java() {
        assert_eq!(shown(number("100").remainder(&number("0.3"))), "0.1");
        assert_eq!(shown(number("3").remainder(&number("0.3"))), "0");
        assert_eq!(shown(number("-7.50").remainder(&number("2"))), "-1.50");
        assert_eq!(shown(number("1.5").remainder(&number("20.00"))), "1.5");
        assert_eq!(shown(number("1").remainder(&number("0"))), "Division by zero");
    }

    #[test]
    fn powers_and_logarithms() {
        assert_eq!(shown(number("1").exp()), "2.7182818284590452353602874713527");
        assert_eq!(shown(number("-2.5").exp()), "0.082084998623898795169528674467160");
        assert_eq!(shown(number("1000").exp()), "1.9700711140170469938888793522433E+434");
        assert_eq!(shown(number("2").log()), "0.69314718055994530941723212145818");
        assert_eq!(shown(number("123.456").log()), "4.8158848172832638831092321051665");
        assert_eq!(shown(number("2").log10()), "0.30102999566398119521373889472449");
        assert_eq!(shown(number("100").log10()), "2");
        assert_eq!(shown(number("0.001").log10()), "-3.0000000000000000000000000000000");
        assert_eq!(shown(number("1000").log10()), "3.0000000000000000000000000000000");
        assert_eq!(number("1").log10().unwrap().scale, -33);
        assert_eq!(shown(number("1E+100").log()), "230.25850929940456840179914546844");
        assert_eq!(shown(number("0").log()), "Natural log of number zero or less");
        assert_eq!(shown(number("1E+20").exp()), "Overflow");
        let near = number("1.00000000000000000000000000000000000001").log().unwrap();
        assert!(near.to_string().starts_with("9.99999999999999999999999"), "{near}");
    }

    proptest! {
        #[test]
        fn exp_and_log_undo_each_other(unscaled in 1_i64..1_000_000_000, scale in 0_i32..12) {
            let number = Decimal { unscaled: BigInt::from(unscaled), scale };
            let again = number.log().unwrap().exp().unwrap();
            let error = again.sum(&number.negate()).unwrap().divide(&number).unwrap().abs();
            prop_assert!(error.compare(&Decimal::parse("1E-28").unwrap()).is_lt(), "{number}: {again}");
        }

        #[test]
        fn quotient_and_remainder_make_the_dividend(a: i64, b in 1_i64..1000, x in -3_i32..9, y in -3_i32..9) {
            let (a, b) = (Decimal { unscaled: a.into(), scale: x }, Decimal { unscaled: b.into(), scale: y });
            let rest = a.remainder(&b).unwrap();
            prop_assert!(rest.abs().compare(&b).is_lt());
            let taken = a.sum(&rest.negate()).unwrap();
            prop_assert!(taken.remainder(&b).unwrap().is_zero());
        }
    }
}
