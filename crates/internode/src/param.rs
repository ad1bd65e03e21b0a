//! What a message's header may say besides (`net.ParamType`): each as number, length and value.

use thiserror::Error;
use types::vint::TooLong;
use types::{Address, ReadError, Reader, Token, Uuid, WriteBytes};

/// Who is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceType {
    /// Nobody.
    None,
    /// A statement.
    Query,
    /// A repair.
    Repair,
}

impl TraceType {
    const ALL: [Self; 3] = [Self::None, Self::Query, Self::Repair];
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// To whom the receiver is to send the same message, each with the id that its answer is to
    /// have. Of writes to a distant datacenter.
    ForwardTo(Vec<(Address, u64)>),
    /// Who is to be answered, if not the sender.
    RespondTo(Address),
    /// The session that what happens is traced under.
    TraceSession(Uuid),
    /// Whose session that is.
    TraceType(TraceType),
    /// Tombstones over the threshold that fails a read.
    TombstoneFail(i32),
    /// Tombstones over the threshold that warns.
    TombstoneWarn(i32),
    /// Bytes over the threshold that fails a read.
    ReadSizeFail(i64),
    /// Bytes over the threshold that warns.
    ReadSizeWarn(i64),
    /// Bytes of a row index over the threshold that fails a read.
    RowIndexSizeFail(i64),
    /// Bytes of a row index over the threshold that warns.
    RowIndexSizeWarn(i64),
    /// What extensions of Cassandra send each other.
    Custom(Vec<(String, Vec<u8>)>),
    /// The ranges of a snapshot, without their left ends. From 5.0 on.
    SnapshotRanges(Vec<(Token, Token)>),
    /// Indexes over the threshold that warns. From 5.0 on.
    TooManyIndexesWarn(i32),
    /// Indexes over the threshold that fails a read. From 5.0 on.
    TooManyIndexesFail(i32),
}

/// Why a parameter cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParamError {
    /// It is malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A kind of trace that there is not.
    #[error("invalid type of trace {0}")]
    TraceType(u8),
    /// The name of a custom one is too long.
    #[error(transparent)]
    Name(#[from] TooLong),
}

/// Bytes of an entry of FORWARD_TO at least: size, address and port, id.
const LEAST_FORWARD: usize = 8;
/// Bytes of a custom parameter at least: lengths of its name and value.
const LEAST_CUSTOM: usize = 3;
/// Bytes of a range of tokens: each behind its length.
const RANGE: usize = 24;

impl Param {
    /// Its number.
    pub fn number(&self) -> u8 {
        match self {
            Self::ForwardTo(_) => 0,
            Self::RespondTo(_) => 1,
            Self::TraceSession(_) => 5,
            Self::TraceType(_) => 6,
            Self::TombstoneFail(_) => 8,
            Self::TombstoneWarn(_) => 9,
            Self::ReadSizeFail(_) => 10,
            Self::ReadSizeWarn(_) => 11,
            Self::RowIndexSizeFail(_) => 12,
            Self::RowIndexSizeWarn(_) => 13,
            Self::Custom(_) => 14,
            Self::SnapshotRanges(_) => 15,
            Self::TooManyIndexesWarn(_) => 16,
            Self::TooManyIndexesFail(_) => 17,
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), ParamError> {
        match self {
            Self::ForwardTo(targets) => {
                out.put_uvint(targets.len() as u64);
                for (address, id) in targets {
                    address.write(out);
                    out.put_uvint(*id);
                }
            }
            Self::RespondTo(address) => address.write(out),
            Self::TraceSession(session) => out.put(&session.to_bytes()),
            Self::TraceType(kind) => out.put_u8(*kind as u8),
            Self::TombstoneFail(n)
            | Self::TombstoneWarn(n)
            | Self::TooManyIndexesWarn(n)
            | Self::TooManyIndexesFail(n) => out.put_i32(*n),
            Self::ReadSizeFail(n)
            | Self::ReadSizeWarn(n)
            | Self::RowIndexSizeFail(n)
            | Self::RowIndexSizeWarn(n) => out.put_i64(*n),
            Self::Custom(entries) => {
                out.put_uvint(entries.len() as u64);
                for (name, value) in entries {
                    out.put_utf(name)?;
                    out.put_vint_bytes(value);
                }
            }
            Self::SnapshotRanges(ranges) => {
                out.put_u32(ranges.len() as u32);
                for token in ranges.iter().flat_map(|(left, right)| [left, right]) {
                    out.put_int_bytes(&token.0.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    /// Reads the value of a parameter; none of one that nobody knows.
    fn read(number: u64, reader: &mut Reader<'_>) -> Result<Option<Self>, ParamError> {
        Ok(Some(match number {
            0 => {
                let count = reader.count(LEAST_FORWARD)?;
                let one = |_| Ok((Address::read(reader)?, reader.uvint()?));
                Self::ForwardTo((0..count).map(one).collect::<Result<_, ReadError>>()?)
            }
            1 => Self::RespondTo(Address::read(reader)?),
            5 => Self::TraceSession(Uuid::from_bytes(reader.array()?)),
            6 => {
                let number = reader.u8()?;
                let kind = TraceType::ALL.get(usize::from(number));
                Self::TraceType(*kind.ok_or(ParamError::TraceType(number))?)
            }
            8 => Self::TombstoneFail(reader.i32()?),
            9 => Self::TombstoneWarn(reader.i32()?),
            10 => Self::ReadSizeFail(reader.i64()?),
            11 => Self::ReadSizeWarn(reader.i64()?),
            12 => Self::RowIndexSizeFail(reader.i64()?),
            13 => Self::RowIndexSizeWarn(reader.i64()?),
            14 => {
                let count = reader.count(LEAST_CUSTOM)?;
                let one = |_| Ok((reader.utf()?, reader.vint_bytes()?.to_vec()));
                Self::Custom((0..count).map(one).collect::<Result<_, ReadError>>()?)
            }
            15 => {
                let count = reader.i32()?;
                let fits = |count: &usize| count.saturating_mul(RANGE) <= reader.remaining();
                let fits = usize::try_from(count).ok().filter(fits);
                let count = fits.ok_or(ReadError::Length(count.into()))?;
                let one = |_| Ok((token(reader)?, token(reader)?));
                Self::SnapshotRanges((0..count).map(one).collect::<Result<_, ReadError>>()?)
            }
            16 => Self::TooManyIndexesWarn(reader.i32()?),
            17 => Self::TooManyIndexesFail(reader.i32()?),
            _ => return Ok(None),
        }))
    }
}

fn token(reader: &mut Reader<'_>) -> Result<Token, ReadError> {
    let bytes = reader.int_bytes()?;
    let length = || ReadError::Length(bytes.len() as i64);
    bytes.as_array().map(|bytes| Token(i64::from_be_bytes(*bytes))).ok_or_else(length)
}

/// The parameters of a header, by number, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<Param>);

impl Params {
    /// None; this allocates nothing.
    pub const NONE: Self = Self(Vec::new());

    /// Sets one, in place of any of its kind.
    pub fn set(&mut self, param: Param) {
        match self.0.binary_search_by_key(&param.number(), Param::number) {
            Ok(at) => {
                if let Some(place) = self.0.get_mut(at) {
                    *place = param;
                }
            }
            Err(at) => self.0.insert(at, param),
        }
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, param: Param) -> Self {
        self.set(param);
        self
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Param> {
        self.0.iter()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who is to be answered, if not the sender.
    pub fn respond_to(&self) -> Option<Address> {
        self.0.iter().find_map(|param| match param {
            Param::RespondTo(address) => Some(*address),
            _ => None,
        })
    }

    /// Who else is to get the message.
    pub fn forward_to(&self) -> &[(Address, u64)] {
        let found = self.0.iter().find_map(|param| match param {
            Param::ForwardTo(targets) => Some(&targets[..]),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The session that what happens is traced under.
    pub fn trace_session(&self) -> Option<Uuid> {
        self.0.iter().find_map(|param| match param {
            Param::TraceSession(session) => Some(*session),
            _ => None,
        })
    }

    /// Sets the session that others name, and whose it is.
    pub fn set_trace_of(&mut self, others: &Self) {
        for param in &others.0 {
            if matches!(param, Param::TraceSession(_) | Param::TraceType(_)) {
                self.set(param.clone());
            }
        }
    }

    /// Appends number of parameters and parameters.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), ParamError> {
        out.put_uvint(self.0.len() as u64);
        let mut value = Vec::new();
        for param in &self.0 {
            value.clear();
            param.write(&mut value)?;
            out.put_uvint(param.number().into());
            out.put_vint_bytes(&value);
        }
        Ok(())
    }

    /// Steps over them: what follows is known even where one of them is malformed.
    pub(crate) fn skip(reader: &mut Reader<'_>) -> Result<(), ReadError> {
        for _ in 0..reader.uvint()? {
            reader.uvint()?;
            reader.vint_bytes()?;
        }
        Ok(())
    }

    /// Reads them; those that nobody knows are passed over. A value need not take all of its
    /// length, as in Cassandra.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ParamError> {
        let mut params = Self::NONE;
        for _ in 0..reader.uvint()? {
            let number = reader.uvint()?;
            let value = reader.vint_bytes()?;
            if let Some(param) = Param::read(number, &mut Reader::new(value))? {
                params.set(param);
            }
        }
        Ok(params)
    }
}
