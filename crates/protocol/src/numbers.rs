//! What numbers on the wire stand for, and the error for those that stand for nothing.

use crate::{consistency::Consistency, error::ProtocolError, opcode::Opcode, version::Version};

impl Version {
    /// The version with this number (the header's first byte without its direction bit).
    pub fn from_number(number: u8) -> Result<Self, ProtocolError> {
        match number {
            3 => Ok(Self::V3),
            4 => Ok(Self::V4),
            5 => Ok(Self::V5),
            6 => Ok(Self::V6),
            _ => Err(ProtocolError::UnsupportedVersion(number)),
        }
    }
}

impl Opcode {
    /// The opcode with this number.
    pub fn from_number(number: u8) -> Result<Self, ProtocolError> {
        let known = Self::ALL.get(usize::from(number)).copied();
        known.ok_or(ProtocolError::UnknownOpcode(number))
    }
}

impl Consistency {
    /// The level with this code.
    pub fn from_code(code: u16) -> Result<Self, ProtocolError> {
        Self::ALL.get(usize::from(code)).copied().ok_or(ProtocolError::UnknownConsistency(code))
    }
}
