//! Why a schema change is refused.

/// Why a schema change is refused, with Cassandra's text. The kinds are those of the native
/// protocol's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The statement's properties are malformed (`SyntaxException`, 0x2000).
    #[error("{0}")]
    Syntax(String),
    /// Not for clients to change (`UnauthorizedException`, 0x2100).
    #[error("{0}")]
    Unauthorized(String),
    /// The statement makes no sense here (`InvalidRequestException`, 0x2200).
    #[error("{0}")]
    Invalid(String),
    /// An option's value does not do (`ConfigurationException`, 0x2300).
    #[error("{0}")]
    Config(String),
    /// What is to be created exists (`AlreadyExistsException`, 0x2400).
    #[error("{}", already_exists(keyspace, table))]
    AlreadyExists {
        /// Keyspace.
        keyspace: String,
        /// Table, empty when it is the keyspace that exists.
        table: String,
    },
}

fn already_exists(keyspace: &str, table: &str) -> String {
    if table.is_empty() {
        format!("Cannot add existing keyspace \"{keyspace}\"")
    } else {
        format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
    }
}

impl SchemaError {
    /// The native protocol's error code.
    pub fn code(&self) -> i32 {
        match self {
            Self::Syntax(_) => 0x2000,
            Self::Unauthorized(_) => 0x2100,
            Self::Invalid(_) => 0x2200,
            Self::Config(_) => 0x2300,
            Self::AlreadyExists { .. } => 0x2400,
        }
    }

    pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::Invalid(text.into()))
    }

    pub(crate) fn config<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::Config(text.into()))
    }
}
