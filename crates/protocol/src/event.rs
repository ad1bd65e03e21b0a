//! Events, and schema changes, which are results as well (`org.apache.cassandra.transport.Event`).

use std::{fmt, net::SocketAddr};

use crate::{error::ProtocolError, put, reader::Reader, version::Version};

/// Gives an enumeration of upper-case names its table.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident as $kind:literal { $($variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is named by the protocol's specification, section 4.2")]
        pub enum $name { $($variant,)+ }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The one of this name, in any case.
            pub fn from_name(name: &str) -> Result<Self, ProtocolError> {
                let found = Self::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(name));
                found.copied().ok_or_else(|| ProtocolError::UnknownName {
                    value: name.get(..name.floor_char_boundary(MAX_QUOTED)).unwrap_or_default().to_owned(),
                    kind: $kind,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Longest part of an unknown name that an error quotes, in bytes.
const MAX_QUOTED: usize = 64;

named! {
    /// What a client may register for.
    EventType as "Type" {
        TopologyChange = "TOPOLOGY_CHANGE",
        StatusChange = "STATUS_CHANGE",
        SchemaChange = "SCHEMA_CHANGE",
        TraceComplete = "TRACE_COMPLETE",
    }
}

named! {
    /// What happened to the ring.
    TopologyChange as "Change" {
        NewNode = "NEW_NODE",
        RemovedNode = "REMOVED_NODE",
        MovedNode = "MOVED_NODE",
    }
}

named! {
    /// What happened to a node.
    StatusChange as "Status" {
        Up = "UP",
        Down = "DOWN",
    }
}

named! {
    /// What happened to a part of the schema.
    Change as "Change" {
        Created = "CREATED",
        Updated = "UPDATED",
        Dropped = "DROPPED",
    }
}

named! {
    /// Which part of the schema.
    Target as "Target" {
        Keyspace = "KEYSPACE",
        Table = "TABLE",
        Type = "TYPE",
        Function = "FUNCTION",
        Aggregate = "AGGREGATE",
    }
}

impl EventType {
    /// First version that has it.
    pub fn since(self) -> Version {
        match self {
            Self::TraceComplete => Version::V4,
            _ => Version::V3,
        }
    }
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// What happened.
    pub change: Change,
    /// To what.
    pub target: Target,
    /// In, or to, which keyspace.
    pub keyspace: String,
    /// Name of the table, type, function or aggregate; empty for a keyspace.
    pub name: String,
    /// CQL types of the arguments of a function or aggregate; else none.
    pub arguments: Vec<String>,
}

impl SchemaChange {
    /// Writes the change. Version 3 has no functions: the keyspace was updated, with an empty name
    /// behind it that version 3 does not have either (as Cassandra writes it).
    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version) {
        let callable = matches!(self.target, Target::Function | Target::Aggregate);
        if callable && version < Version::V4 {
            put::string(out, Change::Updated.name());
            put::string(out, Target::Keyspace.name());
            put::string(out, &self.keyspace);
            put::string(out, "");
            return;
        }
        put::string(out, self.change.name());
        put::string(out, self.target.name());
        put::string(out, &self.keyspace);
        if self.target != Target::Keyspace {
            put::string(out, &self.name);
        }
        if callable {
            put::string_list(out, self.arguments.iter().map(String::as_str));
        }
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        let change = Change::from_name(reader.string()?)?;
        let target = Target::from_name(reader.string()?)?;
        let keyspace = reader.string()?.to_owned();
        let name = match target {
            Target::Keyspace => String::new(),
            _ => reader.string()?.to_owned(),
        };
        let mut arguments = Vec::new();
        if matches!(target, Target::Function | Target::Aggregate) {
            for _ in 0..reader.u16()? {
                arguments.push(reader.string()?.to_owned());
            }
        }
        Ok(Self { change, target, keyspace, name, arguments })
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node joined, left or moved; the address is its native one, as in `system.peers_v2`.
    Topology(TopologyChange, SocketAddr),
    /// A node came up or went down.
    Status(StatusChange, SocketAddr),
    /// The schema changed.
    Schema(SchemaChange),
}

impl Event {
    /// What a client registers for to get it.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Topology(..) => EventType::TopologyChange,
            Self::Status(..) => EventType::StatusChange,
            Self::Schema(_) => EventType::SchemaChange,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version) {
        put::string(out, self.event_type().name());
        match self {
            Self::Topology(change, node) => {
                put::string(out, change.name());
                put::socket(out, *node);
            }
            Self::Status(status, node) => {
                put::string(out, status.name());
                put::socket(out, *node);
            }
            Self::Schema(change) => change.write(out, version),
        }
    }
}
