//! Durations: months, days and nanoseconds, which are not multiples of one another (`cql3.Duration`).

use crate::vint::{ReadError, Reader, WriteBytes};

/// A duration. Its parts are all of one sign or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Months; a year is twelve.
    pub months: i32,
    /// Days; a week is seven. A day is 24 hours only where no month is involved.
    pub days: i32,
    /// Nanoseconds.
    pub nanos: i64,
}

/// Are these a duration's parts: none below zero, or none above?
pub(crate) fn same_sign(months: i32, days: i32, nanos: i64) -> bool {
    (months >= 0 && days >= 0 && nanos >= 0) || (months <= 0 && days <= 0 && nanos <= 0)
}

impl Duration {
    /// A duration of these parts; `None` when their signs differ.
    pub fn new(months: i32, days: i32, nanos: i64) -> Option<Self> {
        same_sign(months, days, nanos).then_some(Self { months, days, nanos })
    }

    /// Is a part below zero?
    pub fn is_negative(&self) -> bool {
        self.months < 0 || self.days < 0 || self.nanos < 0
    }

    /// Reads the three signed vints of a value of type `duration`.
    pub fn from_bytes(value: &[u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(value);
        Ok(Self { months: reader.vint32()?, days: reader.vint32()?, nanos: reader.vint()? })
    }

    /// The value of type `duration`.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8);
        out.put_vint(self.months.into());
        out.put_vint(self.days.into());
        out.put_vint(self.nanos);
        out
    }
}
