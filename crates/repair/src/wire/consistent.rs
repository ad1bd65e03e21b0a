//! The phases of an incremental repair, which all replicas end alike (`repair.consistent`).

use types::{Address, Reader, Uuid, WriteBytes};

use super::error::PayloadError;
use super::kinds::SessionState;
use super::parts::{Unwritable, addresses, put_count, uuid};

/// A message that is a session's id and no more.
macro_rules! session_message {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The session, which is the repair's.
            pub session: Uuid,
        }

        impl $name {
            /// Reads it.
            ///
            /// # Errors
            /// If it is malformed.
            pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
                Ok(Self { session: uuid(reader)? })
            }

            /// Appends it.
            pub fn write(&self, out: &mut Vec<u8>) {
                out.put(&self.session.to_bytes());
            }
        }
    };
}

session_message! {
    /// A replica is to promise that it will end the session as it is told (`FinalizePropose`): its
    /// id.
    FinalizePropose
}
session_message! {
    /// The data is repaired (`FinalizeCommit`): the session's id.
    FinalizeCommit
}
session_message! {
    /// The data is not repaired (`FailSession`): the session's id.
    FailSession
}
session_message! {
    /// How far has a session come (`StatusRequest`)? Its id.
    StatusRequest
}

/// A replica is to separate what is to be repaired (`PrepareConsistentRequest`).
///
/// ```text
/// session, coordinator, count, participants
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareConsistentRequest {
    /// The session.
    pub session: Uuid,
    /// Who coordinates it.
    pub coordinator: Address,
    /// All that take part, in the order that they came in: Cassandra's is that of a hash set.
    pub participants: Vec<Address>,
}

impl PrepareConsistentRequest {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self {
            session: uuid(reader)?,
            coordinator: Address::read(reader)?,
            participants: addresses(reader)?,
        })
    }

    /// Appends it.
    ///
    /// # Errors
    /// If there are more participants than a message takes.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        out.put(&self.session.to_bytes());
        self.coordinator.write(out);
        put_count(out, self.participants.len())?;
        self.participants.iter().for_each(|participant| participant.write(out));
        Ok(())
    }
}

/// A replica's answer to one of the phases.
macro_rules! answer {
    ($(#[$doc:meta])* $name:ident, $(#[$of_flag:meta])* $flag:ident) => {
        $(#[$doc])*
        ///
        /// ```text
        /// session, participant, bool
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The session.
            pub session: Uuid,
            /// The replica.
            pub participant: Address,
            $(#[$of_flag])*
            pub $flag: bool,
        }

        impl $name {
            /// Reads it.
            ///
            /// # Errors
            /// If it is malformed.
            pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
                Ok(Self {
                    session: uuid(reader)?,
                    participant: Address::read(reader)?,
                    $flag: reader.bool()?,
                })
            }

            /// Appends it.
            pub fn write(&self, out: &mut Vec<u8>) {
                out.put(&self.session.to_bytes());
                self.participant.write(out);
                out.put_bool(self.$flag);
            }
        }
    };
}

answer! {
    /// A replica has separated it, or cannot (`PrepareConsistentResponse`).
    PrepareConsistentResponse,
    /// Has it?
    is_success
}
answer! {
    /// A replica promises, or not (`FinalizePromise`).
    FinalizePromise,
    /// Does it?
    is_promised
}

/// How far a session has come at a replica (`StatusResponse`).
///
/// ```text
/// session, i32 state
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusResponse {
    /// The session.
    pub session: Uuid,
    /// Its state.
    pub state: SessionState,
}

impl StatusResponse {
    /// Reads it.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, PayloadError> {
        Ok(Self { session: uuid(reader)?, state: SessionState::read(reader.i32()?)? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put(&self.session.to_bytes());
        out.put_i32(self.state.number());
    }
}
