//! Why a request has no answer.

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failed {
    /// The node said that nothing happened.
    #[error("refused: {0}")]
    Refused(String),
    /// Nobody knows whether anything happened.
    #[error("unknown: {0}")]
    Unknown(String),
    /// The node gave something that it must never give.
    #[error("wrong: {0}")]
    Wrong(String),
}
