//! A coordinator whose statements are commands for itself.
//!
//! `void`, `use K`, `keyspace`, `echo N TEXT` (after N turns), `wait TEXT` (until released), `spin
//! N` (for N slices), `blob N`, `ddl`, `error`; a prepared `now TEXT` is answered on the fast path.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use env::Env;
use env::sync::Notify;
use protocol::class_name::class_name;
use protocol::{
    Batch, BindMetadata, Change, Column, ErrorDetail, ErrorResponse, Event, Id, MetadataForm,
    QueryOptions, ResultMetadata, SchemaChange, Target, prepared_id,
};
use server::{
    Answer, AuthStep, Authentication, Context, Coordinator, EventHub, Execute, Outcome,
    PrepareOutcome, PreparedAnswer, RowsAnswer,
};
use types::CqlType;

#[derive(Default)]
pub struct Mock {
    pub env: Option<Env>,
    pub hub: EventHub,
    pub gate: Notify,
    pub waiting: Cell<usize>,
    pub spinning: Cell<usize>,
    pub most_spinning: Cell<usize>,
    pub finished: Cell<usize>,
    pub started: Cell<usize>,
    pub password: Option<&'static str>,
    pub prepared: RefCell<BTreeMap<Id, String>>,
}

pub fn metadata() -> Arc<ResultMetadata> {
    let column = Column {
        keyspace: "ks".into(),
        table: "t".into(),
        name: "c".to_owned(),
        cql_type: CqlType::Blob,
        reversed: false,
    };
    Arc::new(ResultMetadata::new(&[column], class_name))
}

fn one_cell(cell: &[u8]) -> Answer {
    let mut cells = (cell.len() as i32).to_be_bytes().to_vec();
    cells.extend_from_slice(cell);
    Answer::Rows(RowsAnswer {
        metadata: metadata(),
        form: MetadataForm::Full,
        rows: 1,
        cells,
        paging_state: None,
    })
}

pub fn invalid(message: &str) -> ErrorResponse {
    ErrorResponse { message: message.to_owned(), detail: ErrorDetail::Invalid }
}

pub fn schema_change() -> SchemaChange {
    SchemaChange {
        change: Change::Created,
        target: Target::Function,
        keyspace: "ks".to_owned(),
        name: "f".to_owned(),
        arguments: vec!["int".to_owned()],
    }
}

impl Mock {
    fn env(&self) -> &Env {
        self.env.as_ref().unwrap()
    }

    async fn run(&self, context: &Context, text: &str) -> Outcome {
        self.started.set(self.started.get() + 1);
        let (command, rest) = text.split_once(' ').unwrap_or((text, ""));
        let answer = match command {
            "void" => Answer::Void,
            "use" => Answer::SetKeyspace(rest.to_owned()),
            "keyspace" => one_cell(context.session.keyspace().unwrap_or_default().as_bytes()),
            "user" => one_cell(context.session.user().unwrap_or_default().as_bytes()),
            "driver" => {
                one_cell(context.session.driver_name.as_deref().unwrap_or_default().as_bytes())
            }
            "aware" => one_cell(&[u8::from(context.session.is_shard_aware)]),
            "echo" => {
                let (turns, text) = rest.split_once(' ').unwrap();
                for _ in 0..turns.parse().unwrap() {
                    self.env().yield_now().await;
                }
                one_cell(text.as_bytes())
            }
            "wait" => {
                self.waiting.set(self.waiting.get() + 1);
                self.gate.notified().await;
                self.waiting.set(self.waiting.get() - 1);
                self.finished.set(self.finished.get() + 1);
                one_cell(rest.as_bytes())
            }
            "spin" => {
                self.spinning.set(self.spinning.get() + 1);
                self.most_spinning.set(self.most_spinning.get().max(self.spinning.get()));
                for _ in 0..rest.parse().unwrap() {
                    while !self.env().should_yield() {}
                    self.env().yield_now().await;
                }
                self.spinning.set(self.spinning.get() - 1);
                Answer::Void
            }
            "blob" => one_cell(&vec![7; rest.parse().unwrap()]),
            "ddl" => {
                self.env().yield_now().await;
                self.hub.publish(&Event::Schema(schema_change()));
                Answer::SchemaChange(schema_change())
            }
            "warn" => {
                return Outcome { warnings: vec![rest.to_owned()], ..Answer::Void.into() };
            }
            _ => return invalid("no such command").into(),
        };
        answer.into()
    }
}

impl Coordinator for Mock {
    async fn query(&self, context: &Context, text: &str, _: &QueryOptions<'_>) -> Outcome {
        self.run(context, text).await
    }

    async fn prepare(&self, _: &Context, text: &str, _: Option<&str>) -> PrepareOutcome {
        let id = prepared_id(None, text);
        self.prepared.borrow_mut().insert(id, text.to_owned());
        Ok(PreparedAnswer {
            id,
            variables: Arc::new(BindMetadata::default()),
            result: metadata(),
            names: class_name,
        })
        .into()
    }

    async fn execute(&self, context: &Context, execute: &Execute<'_>) -> Outcome {
        let text = Id::try_from(execute.id).ok();
        let text = text.and_then(|id| self.prepared.borrow().get(&id).cloned());
        match text {
            Some(text) => self.run(context, &text).await,
            None => ErrorResponse::unprepared(execute.id).into(),
        }
    }

    async fn batch(&self, _: &Context, batch: &Batch<'_>) -> Outcome {
        one_cell(&[batch.len() as u8]).into()
    }

    fn authentication(&self) -> Authentication {
        match self.password {
            None => Authentication::None,
            Some(_) => Authentication::Required("org.apache.cassandra.auth.PasswordAuthenticator"),
        }
    }

    async fn authenticate(&self, _: &Context, token: &[u8]) -> Result<AuthStep, ErrorResponse> {
        self.env().yield_now().await;
        if Some(token) == self.password.map(str::as_bytes) {
            return Ok(AuthStep::Success { user: Rc::from("cassandra"), token: None });
        }
        Err(ErrorResponse {
            message: "Provided username and/or password are incorrect".to_owned(),
            detail: ErrorDetail::BadCredentials,
        })
    }
}
