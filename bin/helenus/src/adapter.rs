//! The coordinator behind the server's trait.

use std::rc::Rc;

use cluster::{Coordinator, Request};
use protocol::{Batch, ErrorResponse, MetadataForm, QueryOptions};
use server::{
    Answer, AuthStep, Authentication, Context, Execute, Outcome, PreparedAnswer, RowsAnswer,
    metadata_form,
};

/// A shard's coordinator, as its server sees it.
pub(crate) struct Handler(pub Rc<Coordinator>);

fn request<'a>(context: &Context, options: &'a QueryOptions<'a>) -> Request<'a> {
    Request {
        keyspace: context.session.keyspace(),
        version: context.session.version,
        options,
        deadline: context.deadline,
        user: context.session.user(),
    }
}

fn outcome(
    outcome: cluster::Outcome,
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
    Outcome { result, warnings: outcome.warnings, tracing: None }
}

impl server::Coordinator for Handler {
    async fn query(&self, context: &Context, text: &str, options: &QueryOptions<'_>) -> Outcome {
        let skip = options.skip_metadata;
        let form = |_: &_| if skip { MetadataForm::Skipped } else { MetadataForm::Full };
        outcome(self.0.query(text, request(context, options)).await, form)
    }

    async fn prepare(
        &self,
        context: &Context,
        text: &str,
        keyspace: Option<&str>,
    ) -> Result<PreparedAnswer, ErrorResponse> {
        let session = context.session.keyspace();
        let mut info = self.0.prepare(text, session.as_deref(), keyspace).await?;
        if let Some(warning) = info.use_warning
            && (keyspace.is_some() || !context.session.was_warned_of_use())
        {
            info.warnings.push(warning);
        }
        Ok(PreparedAnswer {
            id: info.id,
            variables: info.variables,
            result: info.result,
            names: cluster::class_name,
            warnings: info.warnings,
            tracing: None,
        })
    }

    async fn execute(&self, context: &Context, execute: &Execute<'_>) -> Outcome {
        let (result, info) = self.0.execute(execute.id, request(context, execute.options)).await;
        let version = context.session.version;
        outcome(result, |page| match &info {
            // drivers must not take the columns of one execution for those of the next
            Some(info) if info.is_conditional => MetadataForm::Full,
            Some(info) => metadata_form(version, execute, &info.result.id(), &page.metadata),
            None => MetadataForm::Full,
        })
    }

    fn authentication(&self) -> Authentication {
        match self.0.authenticates() {
            true => Authentication::Required("org.apache.cassandra.auth.PasswordAuthenticator"),
            false => Authentication::None,
        }
    }

    async fn authenticate(
        &self,
        context: &Context,
        token: &[u8],
    ) -> Result<AuthStep, ErrorResponse> {
        let user = self.0.log_in(token, context.session.remote.ip()).await?;
        Ok(AuthStep::Success { user, token: None })
    }

    async fn batch(&self, context: &Context, batch: &Batch<'_>) -> Outcome {
        let keyspace = context.session.keyspace();
        let version = context.session.version;
        let result =
            self.0.batch(batch, keyspace, version, context.deadline, context.session.user()).await;
        outcome(result, |_| MetadataForm::Full)
    }
}
