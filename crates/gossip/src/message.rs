//! What gossipers say to each other, and its form at messaging 12.

use std::collections::BTreeMap;

use types::vint::TooLong;
use types::{Address, ReadError, Reader, WriteBytes};

use crate::app_state::AppState;
use crate::endpoint::{EndpointState, HeartBeat, Versioned};

/// Bytes of a digest at least: an IPv4 address, generation, version.
const LEAST_DIGEST: usize = 15;
/// Bytes of a node's state at least: an IPv4 address, generation, version, number of values.
const LEAST_STATE: usize = 19;
/// Bytes of a value at least: its kind, length, version.
const LEAST_VALUE: usize = 10;

/// Nodes that one message may name. Rings have a few thousand; each that is named costs many times
/// the bytes that name it.
const NODES_MAX: usize = 100_000;

/// How much is known of a node: in a request, from where on more is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The node.
    pub endpoint: Address,
    /// Generation of what is known.
    pub generation: i32,
    /// Latest version of what is known.
    pub max_version: i32,
}

/// What is known of nodes.
pub type States = BTreeMap<Address, EndpointState>;

/// How a round begins: all that is known, in short; nothing, if all is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syn {
    /// The cluster's name.
    pub cluster: String,
    /// Class name of the partitioner.
    pub partitioner: String,
    /// All that is known.
    pub digests: Vec<Digest>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// What is wanted.
    pub wanted: Vec<Digest>,
    /// What is known better.
    pub states: States,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// GOSSIP_DIGEST_SYN.
    Syn(Syn),
    /// GOSSIP_DIGEST_ACK.
    Ack(Ack),
    /// GOSSIP_DIGEST_ACK2: what was wanted.
    Ack2(States),
    /// ECHO_REQ: whoever answers is up.
    Echo,
    /// GOSSIP_SHUTDOWN. At messaging 12 it says nothing but that, so that one that was long on its
    /// way could be taken for news of the start after it.
    Shutdown {
        /// When it was made, in milliseconds since 1970: what the message's header says.
        created: i64,
    },
}

/// A count of items in front of them; one that the input could not hold is refused, and one of more
/// nodes than rings have.
fn count(reader: &mut Reader<'_>, least: usize) -> Result<usize, ReadError> {
    let count = reader.i32()?;
    let fits =
        |&count: &usize| count <= NODES_MAX && count.saturating_mul(least) <= reader.remaining();
    usize::try_from(count).ok().filter(fits).ok_or(ReadError::Length(count.into()))
}

impl Digest {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let endpoint = Address::read(reader)?;
        Ok(Self { endpoint, generation: reader.i32()?, max_version: reader.i32()? })
    }

    fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, ReadError> {
        (0..count(reader, LEAST_DIGEST)?).map(|_| Self::read(reader)).collect()
    }

    fn write_all(digests: &[Self], out: &mut Vec<u8>) {
        out.put_u32(digests.len() as u32);
        for digest in digests {
            digest.endpoint.write(out);
            out.put_i32(digest.generation);
            out.put_i32(digest.max_version);
        }
    }
}

impl EndpointState {
    /// Reads it. A value of a kind that nobody knows is an error, as it is for Cassandra.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let heartbeat = HeartBeat { generation: reader.i32()?, version: reader.i32()? };
        let mut state = Self::new(heartbeat);
        for _ in 0..count(reader, LEAST_VALUE)? {
            let number = reader.i32()?;
            let kind = AppState::from_number(number).ok_or(ReadError::Length(number.into()))?;
            let value = reader.utf()?;
            state.values.insert(kind, Versioned::new(value, reader.i32()?));
        }
        Ok(state)
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        out.put_i32(self.heartbeat.generation);
        out.put_i32(self.heartbeat.version);
        out.put_u32(self.values.len() as u32);
        for (kind, value) in &self.values {
            out.put_i32(kind.number().into());
            out.put_utf(&value.value)?;
            out.put_i32(value.version);
        }
        Ok(())
    }
}

/// Reads states of nodes: the payload of ACK2.
pub fn read_states(reader: &mut Reader<'_>) -> Result<States, ReadError> {
    let count = count(reader, LEAST_STATE)?;
    (0..count).map(|_| Ok((Address::read(reader)?, EndpointState::read(reader)?))).collect()
}

/// Appends states of nodes.
pub fn write_states(states: &States, out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.put_u32(states.len() as u32);
    for (address, state) in states {
        address.write(out);
        state.write(out)?;
    }
    Ok(())
}

impl Syn {
    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let (cluster, partitioner) = (reader.utf()?, reader.utf()?);
        Ok(Self { cluster, partitioner, digests: Digest::read_all(reader)? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        out.put_utf(&self.cluster)?;
        out.put_utf(&self.partitioner)?;
        Digest::write_all(&self.digests, out);
        Ok(())
    }
}

impl Ack {
    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self { wanted: Digest::read_all(reader)?, states: read_states(reader)? })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        Digest::write_all(&self.wanted, out);
        write_states(&self.states, out)
    }
}
