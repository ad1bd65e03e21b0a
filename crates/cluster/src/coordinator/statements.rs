//! A request: its statement planned, allowed, bound and run.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::guard::Guard;
use cql::modify::Modify;
use cql::{CqlError, Plan, Prepared, redacted};
use env::Class;
use protocol::{Batch, BatchKind, BatchStatement, ErrorResponse, prepared_id};
use schema::Schema;
use storage::Trace;

use super::Coordinator;
use crate::answer::{Answer, Outcome, PreparedInfo, UseWarning, cql_error, invalid, parse_error};
use crate::prepared::{Entry, result_metadata};
use crate::request::Request;
use crate::tracing::Tracing;
use crate::values::{Bound, check_count};

/// How long a request waits before it is planned anew, for an alteration to reach this shard.
const REPLAN_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a text from which on it is parsed and planned on a helper thread: a byte of the dearest ones costs 200 ns.
const LONG_TEXT: usize = 8 << 10;

impl Coordinator {
    /// Parses and plans a text under the present schema, whose epoch is given too; a long one where it keeps nobody waiting.
    async fn plan(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
        trace: &Trace,
    ) -> Result<(Prepared, u64), ErrorResponse> {
        trace.note(&self.env, || format!("Parsing {}", redacted(text)));
        let schema = self.schema();
        let epoch = schema.epoch();
        let planned = if text.len() <= LONG_TEXT {
            plan_under(text, keyspace, is_shard_aware, &schema)
        } else {
            let (text, keyspace) = (text.to_owned(), keyspace.map(str::to_owned));
            let plan = move || plan_under(&text, keyspace.as_deref(), is_shard_aware, &schema);
            Box::pin(self.env.helper(plan)).await
        };
        trace.note(&self.env, || "Preparing statement".to_owned());
        Ok((planned?, epoch))
    }

    /// Is there the keyspace that a request names for itself? That it needs none makes no difference.
    ///
    /// # Errors
    /// If there is not.
    pub fn check_keyspace(&self, keyspace: Option<&str>) -> Result<(), ErrorResponse> {
        match keyspace.filter(|keyspace| self.schema().keyspace(keyspace).is_none()) {
            Some(keyspace) => Err(invalid(format!("Keyspace '{keyspace}' does not exist"))),
            None => Ok(()),
        }
    }

    /// Runs a statement.
    pub async fn query(self: &Rc<Self>, text: &str, request: Request<'_>) -> Outcome {
        if let Err(error) = self.check_keyspace(request.options.keyspace) {
            return error.into();
        }
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        if let Some(tracing) = &request.tracing {
            tracing.begin_query(text, request.options);
        }
        loop {
            let (keyspace, shards) = (keyspace.as_deref(), request.is_shard_aware);
            let prepared = match self.plan(text, keyspace, shards, request.trace()).await {
                Ok((prepared, _)) => prepared,
                Err(error) => return error.into(),
            };
            let metadata = result_metadata(&prepared);
            let outcome = self.run(&prepared, &metadata, &request).await;
            if !self.plans_anew(&outcome, &request).await {
                return outcome;
            }
        }
    }

    /// Is a request to be planned anew, since a table was altered on its way? Then the alteration had time to come here.
    async fn plans_anew(&self, outcome: &Outcome, request: &Request<'_>) -> bool {
        if !outcome.is_outdated || self.env.now() + REPLAN_PAUSE >= request.deadline {
            return false;
        }
        self.env.mark("cas.outdated");
        self.env.sleep(REPLAN_PAUSE).await;
        true
    }

    /// Prepares a statement, on every shard. The guard of an ordinary user adds to `warnings`, which go with a refusal too.
    ///
    /// # Errors
    /// If it makes no sense.
    pub async fn prepare(
        self: &Rc<Self>,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
        tracing: Option<&Tracing>,
        user: Option<&Rc<str>>,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedInfo, ErrorResponse> {
        if let Some(tracing) = tracing {
            tracing.begin_prepare(text);
            tracing.trace().note(&self.env, || format!("Parsing {}", redacted(text)));
        }
        let known = self.prepared.borrow().get(&prepared_id(keyspace, text));
        // one whose table has changed was forgotten, though this shard has it still
        let is_new = known.as_ref().is_none_or(|entry| !entry.is_of(&self.schema()));
        let known = known.is_some_and(|entry| entry.epoch == self.schema().epoch());
        let entry = self.prepare_here(text, keyspace, is_shard_aware).await?;
        if let Some(user) = user
            && self.is_guarded(user, false).await?
        {
            let guard = self.guardrails.new_guard();
            let checked = guard_plan(&entry.prepared.plan, &guard);
            warnings.extend(guard.take_warnings());
            checked.map_err(cql_error)?;
        }
        if let Plan::Role(statement) = &entry.prepared.plan
            && !self.auth.authenticates()
        {
            // Cassandra validates what it prepares: nobody has a name here, and so nothing is done but refused
            Box::pin(self.auth.run_role(statement, None)).await.result?;
        }
        for shard in (0..self.shards.count()).filter(|shard| *shard != self.shards.me()) {
            let (text, keyspace) = (text.to_owned(), keyspace.map(str::to_owned));
            let prepare = async move |other: Rc<Self>| {
                // The schema may have changed meanwhile; then the shard answers UNPREPARED and the driver asks again.
                let _ = other.prepare_here(&text, keyspace.as_deref(), is_shard_aware).await;
                // who was asked to prepare it forgets what it took the place of
                other.prepared.borrow_mut().take_evicted();
            };
            let _ = self.shards.call_async(shard, Class::Statement, prepare).await;
        }
        let evicted = self.prepared.borrow_mut().take_evicted();
        if is_new || !evicted.is_empty() {
            Box::pin(self.keep_or_forget(is_new.then_some(&*entry), &evicted)).await;
        }
        let mut info = entry.info.clone();
        if !known && !entry.prepared.is_qualified {
            info.use_warning = Some(UseWarning::new(keyspace, keyspace, &info.id));
        }
        Ok(info)
    }

    /// Keeps a statement that is new, and forgets others.
    async fn keep_or_forget(self: &Rc<Self>, new: Option<&Entry>, gone: &[Rc<Entry>]) {
        if let Some(entry) = new {
            self.keep_statement(entry).await;
        }
        self.forget_statements(gone).await;
    }

    pub(crate) async fn prepare_here(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
    ) -> Result<Rc<Entry>, ErrorResponse> {
        let planned = self.plan(text, keyspace, is_shard_aware, &Trace::default()).await;
        let (prepared, epoch) = planned?;
        Ok(self.keep_prepared(text, keyspace, prepared, epoch))
    }

    fn keep_prepared(
        &self,
        text: &str,
        keyspace: Option<&str>,
        prepared: Prepared,
        epoch: u64,
    ) -> Rc<Entry> {
        let entry = Rc::new(Entry::new(text, keyspace, prepared, epoch));
        self.prepared.borrow_mut().put(&entry);
        entry
    }

    /// The statement of an id, planned under the present schema.
    fn entry(&self, id: &[u8]) -> Result<Rc<Entry>, ErrorResponse> {
        let entry = self.prepared.borrow().get(id);
        let entry = entry.ok_or_else(|| ErrorResponse::unprepared(id))?;
        if entry.epoch == self.schema().epoch() {
            return Ok(entry);
        }
        // What no longer makes sense, or was prepared for other columns, is no longer prepared, as in Cassandra: a
        // client that sent values of the old types, or reads cells by the old columns, would be wrong.
        let schema = self.schema();
        if entry.is_of(&schema)
            // who prepared it was allowed its words
            && let Ok(prepared) = plan_under(&entry.text, entry.keyspace.as_deref(), true, &schema)
        {
            let (text, keyspace) = (&entry.text, entry.keyspace.as_deref());
            return Ok(self.keep_prepared(text, keyspace, prepared, schema.epoch()));
        }
        self.prepared.borrow_mut().remove(&entry);
        Err(ErrorResponse::unprepared(id))
    }

    /// Runs a prepared statement; also gives its id and the metadata that PREPARE announced.
    pub async fn execute(
        self: &Rc<Self>,
        id: &[u8],
        request: Request<'_>,
    ) -> (Outcome, Option<PreparedInfo>) {
        let mut entry = match self.entry(id) {
            Ok(entry) => entry,
            Err(error) => return (error.into(), None),
        };
        if let Some(tracing) = &request.tracing {
            tracing.begin_execute(&entry, request.options);
        }
        loop {
            let given = &request.options.values;
            if let Err(error) = check_count(given, &entry.prepared.variables, "there") {
                return (error.into(), Some(entry.info.clone()));
            }
            let outcome = self.run(&entry.prepared, &entry.info.result, &request).await;
            if !self.plans_anew(&outcome, &request).await {
                let mut info = entry.info.clone();
                info.use_warning = entry.use_warning(request.keyspace.as_deref());
                return (outcome, Some(info));
            }
            entry = match self.entry(id) {
                Ok(entry) => entry,
                Err(error) => return (error.into(), None),
            };
        }
    }

    /// Is there anything to watch a user for? Superusers are not watched, nor is anybody where nobody has to say who it is.
    async fn is_guarded(
        self: &Rc<Self>,
        user: &Rc<str>,
        is_warned_anyway: bool,
    ) -> Result<bool, ErrorResponse> {
        if !self.auth.authenticates() || !self.guardrails.want(is_warned_anyway) {
            return Ok(false);
        }
        Ok(!self.auth.is_superuser(user).await?)
    }

    /// Gives a request of an ordinary user its guard.
    async fn watch(
        self: &Rc<Self>,
        request: &Request<'_>,
        is_warned_anyway: bool,
    ) -> Result<(), ErrorResponse> {
        if let Some(user) = &request.user
            && self.is_guarded(user, is_warned_anyway).await?
        {
            let _ = request.guard.set(self.guardrails.new_guard());
        }
        Ok(())
    }

    async fn run(
        self: &Rc<Self>,
        prepared: &Prepared,
        metadata: &Arc<protocol::ResultMetadata>,
        request: &Request<'_>,
    ) -> Outcome {
        let user = request.user.as_ref();
        let allowed = match self.auth.authorize_now(&prepared.needs, user) {
            Some(allowed) => allowed,
            None => Box::pin(self.auth.authorize(&prepared.needs, user)).await,
        };
        if let Err(refused) = allowed {
            return refused.into();
        }
        if request.user.is_some() {
            let is_warned_anyway = match &prepared.plan {
                Plan::Schema(_) => true,
                // of conditions on several columns that change (`intersect_filtering_query_warned`)
                Plan::Select(select) => select.allows_filtering(),
                _ => false,
            };
            let watched = self.watch(request, is_warned_anyway);
            if let Err(error) = Box::pin(watched).await {
                return error.into();
            }
        }
        if let Some(guard) = request.guard()
            && let Err(refused) = guard_plan(&prepared.plan, guard)
        {
            let mut outcome = Outcome::from(cql_error(refused));
            request.warn(&mut outcome);
            return outcome;
        }
        let values = match Bound::new(request.options.values, &prepared.variables) {
            Ok(values) => values,
            Err(error) => return error.into(),
        };
        let mut outcome = match &prepared.plan {
            Plan::Modify(modify) => self.writes.modify(modify, &values, request).await,
            Plan::Batch(batch) => {
                Box::pin(self.writes.batch_statement(batch, &values, request)).await
            }
            Plan::Select(select) => self.reads.select(select, &values, metadata, request).await,
            Plan::Schema(ddl) => {
                Box::pin(self.change_schema(ddl, user, request.guard().is_some())).await
            }
            Plan::Role(statement) => Box::pin(self.auth.run_role(statement, user)).await,
            Plan::Use(keyspace) => self.use_keyspace(keyspace),
            Plan::Truncate(table) => match request.guarded(Guard::drop_or_truncate) {
                Ok(()) => Box::pin(self.truncate_everywhere(table)).await,
                Err(refused) => refused.into(),
            },
            Plan::Describe(describe) => self.describe(describe, request),
        };
        if !prepared.warnings.is_empty() {
            outcome.warnings.splice(0..0, prepared.warnings.iter().cloned());
        }
        request.warn(&mut outcome);
        outcome
    }

    fn use_keyspace(&self, keyspace: &str) -> Outcome {
        let checked = cql::ddl::check_use(keyspace, &self.schema()).map_err(cql_error);
        Outcome::new(checked.map(|()| Answer::SetKeyspace(keyspace.to_owned())), Vec::new())
    }

    /// Runs a BATCH message, whose options are those of the request.
    pub async fn batch(self: &Rc<Self>, batch: &Batch<'_>, request: Request<'_>) -> Outcome {
        if let Some(tracing) = &request.tracing {
            tracing.begin_batch(request.options);
        }
        loop {
            let mut outcome = match self.batch_parts(batch, &request).await {
                Ok(outcome) => outcome,
                Err(error) => error.into(),
            };
            request.warn(&mut outcome);
            if !self.plans_anew(&outcome, &request).await {
                return outcome;
            }
        }
    }

    async fn batch_parts(
        self: &Rc<Self>,
        batch: &Batch<'_>,
        request: &Request<'_>,
    ) -> Result<Outcome, ErrorResponse> {
        self.check_keyspace(request.options.keyspace)?;
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        let mut statements: Vec<Rc<Entry>> = Vec::with_capacity(batch.len());
        let mut values = Vec::with_capacity(batch.len());
        for entry in batch.entries() {
            let statement = match entry.statement {
                BatchStatement::Prepared(id) => self.entry(id)?,
                BatchStatement::Text(text) => {
                    let planned = self.plan(text, keyspace.as_deref(), false, request.trace());
                    let (prepared, _) = planned.await?;
                    Rc::new(Entry::new(text, keyspace.as_deref(), prepared, 0))
                }
            };
            if !matches!(statement.prepared.plan, Plan::Modify(_)) {
                return Err(invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
                ));
            }
            check_count(&entry.values, &statement.prepared.variables, "There")?;
            values.push(Bound::new(entry.values, &statement.prepared.variables)?);
            statements.push(statement);
        }
        let kind = match batch.kind {
            BatchKind::Logged => cql::ast::BatchKind::Logged,
            BatchKind::Unlogged => cql::ast::BatchKind::Unlogged,
            BatchKind::Counter => cql::ast::BatchKind::Counter,
        };
        for needs in statements.iter().map(|entry| &entry.prepared.needs) {
            let user = request.user.as_ref();
            match self.auth.authorize_now(needs, user) {
                Some(allowed) => allowed?,
                None => Box::pin(self.auth.authorize(needs, user)).await?,
            }
        }
        if request.user.is_some() {
            Box::pin(self.watch(request, false)).await?;
        }
        self.guardrails.guard_disk(request)?;
        for entry in &statements {
            request.guarded(|guard| guard_plan(&entry.prepared.plan, guard))?;
        }
        let modifies = statements.iter().filter_map(|entry| match &entry.prepared.plan {
            Plan::Modify(modify) => Some(modify),
            _ => None,
        });
        if modifies.clone().any(|modify| modify.is_conditional()) {
            let all: Vec<&Modify> = modifies.clone().map(|modify| &**modify).collect();
            cql::modify::check_parts(kind, false, &all).map_err(cql_error)?;
            let parts: Vec<_> = modifies.zip(&values).collect();
            return Ok(self.paxos.cas(&parts, true, request).await);
        }
        let parts: Vec<_> = modifies.zip(&values).collect();
        Ok(self.writes.run_batch(kind, &parts, request, self.binder.now(request.options)).await)
    }
}

/// What an ordinary user may not ask, whatever the values are.
fn guard_plan(plan: &Plan, guard: &Guard) -> Result<(), CqlError> {
    match plan {
        Plan::Select(select) => select.guard(guard),
        Plan::Modify(modify) => modify.guard(guard),
        Plan::Batch(batch) => batch.statements().iter().try_for_each(|modify| modify.guard(guard)),
        _ => Ok(()),
    }
}

fn plan_under(
    text: &str,
    keyspace: Option<&str>,
    is_shard_aware: bool,
    schema: &Schema,
) -> Result<Prepared, ErrorResponse> {
    let parse = if is_shard_aware { cql::parse_of_shard_aware } else { cql::parse };
    let parsed = parse(text).map_err(|error| parse_error(&error))?;
    cql::prepare(&parsed, keyspace, schema).map_err(cql_error)
}
