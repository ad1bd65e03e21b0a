//! A shard's coordinator behind the server's trait.

use std::cell::OnceCell;
use std::rc::Rc;

use cluster::{Request, Shard, Tracing};
use protocol::{Batch, ErrorResponse, MetadataForm, QueryOptions};
use server::{
    Answer, AuthStep, Authentication, Context, Execute, Outcome, PrepareOutcome, PreparedAnswer,
    RowsAnswer, metadata_form,
};

use crate::request_logs::{RequestLogs, Watched};

/// A shard, as its server sees it.
pub(crate) struct Handler {
    pub shard: Rc<Shard>,
    pub logs: Rc<RequestLogs>,
}

fn request<'a>(
    context: &Context,
    options: &'a QueryOptions<'a>,
    tracing: &Option<Rc<Tracing>>,
    watched: &Option<Watched>,
) -> Request<'a> {
    Request {
        keyspace: context.session.keyspace(),
        version: context.session.version,
        options,
        deadline: context.deadline,
        user: context.session.user(),
        tracing: tracing.clone(),
        guard: OnceCell::new(),
        observed: watched.as_ref().map(|watched| Rc::clone(&watched.observed)),
        is_shard_aware: context.session.is_shard_aware,
    }
}

fn outcome(
    outcome: cluster::Outcome,
    tracing: Option<[u8; 16]>,
    form: impl FnOnce(&cluster::Page) -> MetadataForm,
) -> Outcome {
    let result = outcome.result.map(|answer| match answer {
        cluster::Answer::Void => Answer::Void,
        cluster::Answer::SetKeyspace(keyspace) => Answer::SetKeyspace(keyspace),
        cluster::Answer::SchemaChange(change) => Answer::SchemaChange(change),
        cluster::Answer::Rows(page) => Answer::Rows(RowsAnswer {
            form: form(&page),
            metadata: page.metadata,
            rows: page.rows,
            cells: page.cells,
            paging_state: page.paging_state,
        }),
    });
    Outcome { result, warnings: outcome.warnings, tracing }
}

/// The id that the client is told: of a trace that it asked for.
fn told(context: &Context, tracing: &Option<Rc<Tracing>>) -> Option<[u8; 16]> {
    tracing.as_ref().filter(|_| context.tracing).and_then(|tracing| tracing.id())
}

impl Handler {
    fn start_tracing(&self, context: &Context) -> Option<Rc<Tracing>> {
        self.shard.tracer().start(context.tracing, context.session.remote.ip())
    }
}

impl server::Coordinator for Handler {
    async fn query(&self, context: &Context, text: &str, options: &QueryOptions<'_>) -> Outcome {
        let (tracing, watched) = (self.start_tracing(context), self.logs.watch());
        let asked = request(context, options, &tracing, &watched);
        let result = self.shard.coordinator().query(text, asked).await;
        self.shard.tracer().end(tracing.as_ref(), &result);
        if let Some(watched) = &watched {
            let error = result.result.as_ref().err();
            Box::pin(self.logs.query(context, (text, options), watched, error)).await;
        }
        let skip = options.skip_metadata;
        let form = |_: &_| if skip { MetadataForm::Skipped } else { MetadataForm::Full };
        outcome(result, told(context, &tracing), form)
    }

    async fn prepare(
        &self,
        context: &Context,
        text: &str,
        keyspace: Option<&str>,
    ) -> PrepareOutcome {
        if let Err(error) = self.shard.coordinator().check_keyspace(keyspace) {
            if self.logs.watch().is_some() {
                Box::pin(self.logs.prepare(context, text, Err(&error))).await;
            }
            return PrepareOutcome { result: Err(error), warnings: Vec::new(), tracing: None };
        }
        let tracing = self.start_tracing(context);
        let session = context.session.keyspace();
        let of = tracing.as_deref();
        let user = context.session.user();
        let user = user.as_ref();
        let mut warnings = Vec::new();
        let within = keyspace.or(session.as_deref());
        let shards = context.session.is_shard_aware;
        let result =
            self.shard.coordinator().prepare(text, within, shards, of, user, &mut warnings).await;
        self.shard.tracer().end_prepare(tracing.as_ref());
        if self.logs.watch().is_some() {
            let ended = result.as_ref().map(|info| self.shard.coordinator().observed(&info.id));
            Box::pin(self.logs.prepare(context, text, ended)).await;
        }
        let result = result.map(|info| {
            warnings.extend(info.warnings);
            if let Some(warning) = info.use_warning
                && (keyspace.is_some() || !context.session.was_warned_of_use())
            {
                warnings.push(warning.to_string());
            }
            PreparedAnswer {
                id: info.id,
                variables: info.variables,
                result: info.result,
                names: cluster::class_name,
            }
        });
        PrepareOutcome { result, warnings, tracing: told(context, &tracing) }
    }

    async fn execute(&self, context: &Context, execute: &Execute<'_>) -> Outcome {
        let (tracing, watched) = (self.start_tracing(context), self.logs.watch());
        let request = request(context, execute.options, &tracing, &watched);
        let (mut result, info) = self.shard.coordinator().execute(execute.id, request).await;
        if let Some(watched) = &watched {
            let error = result.result.as_ref().err();
            Box::pin(self.logs.execute(context, execute.options, watched, error)).await;
        }
        if let Some(warning) = info.as_ref().and_then(|info| info.use_warning.as_ref())
            && !context.session.was_warned_of_use()
        {
            result.warnings.insert(0, warning.to_string());
        }
        self.shard.tracer().end(tracing.as_ref(), &result);
        let version = context.session.version;
        outcome(result, told(context, &tracing), |page| match &info {
            // drivers must not take the columns of one execution for those of the next
            Some(info) if info.is_conditional => MetadataForm::Full,
            Some(info) => metadata_form(version, execute, &info.result.id(), &page.metadata),
            None => MetadataForm::Full,
        })
    }

    fn authentication(&self) -> Authentication {
        match self.shard.auth().authenticates() {
            true => Authentication::Required("org.apache.cassandra.auth.PasswordAuthenticator"),
            false => Authentication::None,
        }
    }

    async fn authenticate(
        &self,
        context: &Context,
        token: &[u8],
    ) -> Result<AuthStep, ErrorResponse> {
        let user = self.shard.auth().log_in(token, context.session.remote.ip()).await;
        if self.logs.watch().is_some() {
            let ended = user.as_ref().map(|user| &**user);
            Box::pin(self.logs.login(context, ended)).await;
        }
        Ok(AuthStep::Success { user: user?, token: None })
    }

    async fn batch(&self, context: &Context, batch: &Batch<'_>) -> Outcome {
        let (tracing, watched) = (self.start_tracing(context), self.logs.watch());
        let asked = request(context, &batch.options, &tracing, &watched);
        let result = self.shard.coordinator().batch(batch, asked).await;
        self.shard.tracer().end(tracing.as_ref(), &result);
        if let Some(watched) = &watched {
            let error = result.result.as_ref().err();
            Box::pin(self.logs.batch(context, batch, watched, error)).await;
        }
        outcome(result, told(context, &tracing), |_| MetadataForm::Full)
    }
}
