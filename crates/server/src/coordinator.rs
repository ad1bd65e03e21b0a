//! The trait behind which statements run, and what comes back.

use std::rc::Rc;
use std::sync::Arc;

use protocol::class_name::ClassName;
use protocol::{
    Batch, BindMetadata, ErrorDetail, ErrorResponse, Id, MetadataForm, QueryOptions,
    ResultMetadata, SchemaChange, Version,
};

use crate::session::Context;

/// What runs statements, on this shard. Its futures run to their end, or to the request's deadline,
/// even when the client has gone; their answer is dropped then.
#[allow(async_fn_in_trait, reason = "shards are single threads: nothing needs to be Send")]
pub trait Coordinator: 'static {
    /// Runs a statement.
    async fn query(&self, context: &Context, text: &str, options: &QueryOptions<'_>) -> Outcome;

    /// Prepares a statement, in `keyspace` rather than the session's where given.
    async fn prepare(
        &self,
        context: &Context,
        text: &str,
        keyspace: Option<&str>,
    ) -> PrepareOutcome;

    /// Runs a prepared statement.
    async fn execute(&self, context: &Context, execute: &Execute<'_>) -> Outcome;

    /// Runs a batch.
    async fn batch(&self, context: &Context, batch: &Batch<'_>) -> Outcome;

    /// Must clients say who they are?
    fn authentication(&self) -> Authentication {
        Authentication::None
    }

    /// Judges an AUTH_RESPONSE.
    async fn authenticate(
        &self,
        context: &Context,
        token: &[u8],
    ) -> Result<AuthStep, ErrorResponse> {
        let _ = (context, token);
        Err(ErrorResponse {
            message: "Authentication is not configured".to_owned(),
            detail: ErrorDetail::BadCredentials,
        })
    }
}

/// An EXECUTE request.
#[derive(Clone, Copy, Debug)]
pub struct Execute<'a> {
    /// Id of the statement.
    pub id: &'a [u8],
    /// Id of the result's metadata that the client holds (version 5 on).
    pub result_metadata_id: Option<&'a [u8]>,
    /// Options and values.
    pub options: &'a QueryOptions<'a>,
}

/// Whether clients must say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// `AllowAllAuthenticator`: READY answers STARTUP.
    None,
    /// AUTHENTICATE with this class answers STARTUP.
    Required(&'static str),
}

/// What answers an AUTH_RESPONSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthStep {
    /// AUTH_CHALLENGE.
    Challenge(Vec<u8>),
    /// AUTH_SUCCESS: statements may come.
    Success {
        /// Who the client is.
        user: Rc<str>,
        /// Token of the answer.
        token: Option<Vec<u8>>,
    },
}

/// How a statement ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its answer.
    pub result: Result<Answer, ErrorResponse>,
    /// Warnings for the client; dropped before version 4.
    pub warnings: Vec<String>,
    /// Id of the trace, where one was made.
    pub tracing: Option<[u8; 16]>,
}

impl From<Result<Answer, ErrorResponse>> for Outcome {
    fn from(result: Result<Answer, ErrorResponse>) -> Self {
        Self { result, warnings: Vec::new(), tracing: None }
    }
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Ok(answer).into()
    }
}

impl From<ErrorResponse> for Outcome {
    fn from(error: ErrorResponse) -> Self {
        Err(error).into()
    }
}

/// The kinds of answer to a statement.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Nothing to say.
    Void,
    /// Of USE; the server sets the session's keyspace to it.
    SetKeyspace(String),
    /// Of a statement that changed the schema. The coordinator has waited for every shard; its
    /// event is published through each shard's [`EventHub`](crate::EventHub).
    SchemaChange(SchemaChange),
    /// A page of rows.
    Rows(RowsAnswer),
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct RowsAnswer {
    /// The columns.
    pub metadata: Arc<ResultMetadata>,
    /// How much of the metadata travels ([`metadata_form`]).
    pub form: MetadataForm,
    /// Number of rows.
    pub rows: u32,
    /// The cells of all rows in order, each an `i32` length (-1: null), big endian, and its bytes.
    pub cells: Vec<u8>,
    /// Where the next page begins.
    pub paging_state: Option<Vec<u8>>,
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct PreparedAnswer {
    /// Its id.
    pub id: Id,
    /// Its variables.
    pub variables: Arc<BindMetadata>,
    /// What it returns.
    pub result: Arc<ResultMetadata>,
    /// Class strings of types.
    pub names: ClassName,
}

/// How a PREPARE ended.
#[derive(Clone, Debug)]
pub struct PrepareOutcome {
    /// The statement, or what is wrong with it.
    pub result: Result<PreparedAnswer, ErrorResponse>,
    /// Warnings for the client; dropped before version 4.
    pub warnings: Vec<String>,
    /// Id of the trace, where one was made.
    pub tracing: Option<[u8; 16]>,
}

impl From<Result<PreparedAnswer, ErrorResponse>> for PrepareOutcome {
    fn from(result: Result<PreparedAnswer, ErrorResponse>) -> Self {
        Self { result, warnings: Vec::new(), tracing: None }
    }
}

/// How much metadata goes with the rows of an EXECUTE
/// (`org.apache.cassandra.transport.messages.ExecuteMessage`). `prepared` is the id that PREPARE
/// answered. Conditional updates, whose columns depend on their outcome, always send all of it.
pub fn metadata_form(
    version: Version,
    execute: &Execute<'_>,
    prepared: &Id,
    returned: &ResultMetadata,
) -> MetadataForm {
    let returned = returned.id();
    match execute.result_metadata_id {
        Some(held) if version >= Version::V5 && held != returned.as_slice() => {
            MetadataForm::Changed
        }
        _ if !execute.options.skip_metadata => MetadataForm::Full,
        None if returned != *prepared => MetadataForm::Full,
        _ => MetadataForm::Skipped,
    }
}
