//! The path of a request: its statement planned, allowed, bound and run.
//!
//! `execute` finds the prepared statement. One that was planned under an older schema epoch is
//! planned again. Permissions come next, then the guard, then the values. `run` is one match over
//! plans.
//!
//! A request that meets an alteration of its table on its way is planned anew.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::guard::Guard;
use cql::modify::Modify;
use cql::{CqlError, Plan, Prepared, redacted};
use protocol::{Batch, BatchKind, BatchStatement, ErrorResponse};

use crate::answer::{Answer, Outcome, PreparedInfo, UseWarning, cql_error, invalid};
use crate::auth::Auth;
use crate::binding::Binder;
use crate::describe::describe;
use crate::guardrails::Guardrails;
use crate::paxos::Paxos;
use crate::peers::Peers;
use crate::prepared::{Entry, result_metadata};
use crate::read::Reads;
use crate::request::Request;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::ShardContext;
use crate::statements::Statements;
use crate::tracing::Tracing;
use crate::truncation::Truncation;
use crate::values::{Bound, check_count};
use crate::watch::Watch;
use crate::write::Writes;

/// How long a request waits before it is planned anew, for an alteration to reach this shard.
const REPLAN_PAUSE: Duration = Duration::from_millis(1);
/// Cassandra's words (`UseStatement.validate`).
const USE_PROHIBITED: &str =
    "USE statements prohibited. (see use_statements_enabled in cassandra.yaml)";

/// Runs the requests of clients.
pub struct Coordinator {
    pub(crate) shard: Rc<ShardContext>,
    pub(crate) peers: Rc<Peers>,
    pub(crate) statements: Rc<Statements>,
    pub(crate) binder: Rc<Binder>,
    pub(crate) reads: Rc<Reads>,
    pub(crate) writes: Rc<Writes>,
    pub(crate) paxos: Rc<Paxos>,
    pub(crate) schema: Rc<SchemaOwner>,
    pub(crate) truncation: Truncation,
    pub(crate) auth: Rc<Auth>,
    pub(crate) watch: Watch,
    pub(crate) guardrails: Rc<Guardrails>,
}

impl Coordinator {
    /// Is there the keyspace that a request names for itself? That it needs none makes no
    /// difference.
    ///
    /// # Errors
    /// If there is not.
    pub fn check_keyspace(&self, keyspace: Option<&str>) -> Result<(), ErrorResponse> {
        match keyspace.filter(|keyspace| self.shard.schema().keyspace(keyspace).is_none()) {
            Some(keyspace) => Err(invalid(format!("Keyspace '{keyspace}' does not exist"))),
            None => Ok(()),
        }
    }

    /// Runs a statement.
    pub async fn query(&self, text: &str, request: Request<'_>) -> Outcome {
        if let Err(error) = self.check_keyspace(request.options.keyspace) {
            return error.into();
        }
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        if let Some(tracing) = &request.tracing {
            tracing.begin_query(text, request.options);
        }
        loop {
            let (keyspace, shards) = (keyspace.as_deref(), request.is_shard_aware);
            let prepared = match self.statements.plan(text, keyspace, shards, request.trace()).await
            {
                Ok((prepared, _)) => prepared,
                Err(error) => return error.into(),
            };
            request.see_none();
            request.see(text, &prepared);
            let metadata = result_metadata(&prepared);
            let began = self.watch.slow.begin(&prepared.plan);
            let outcome = self.run(&prepared, &metadata, &request).await;
            self.watch.slow.ended(began, keyspace, text);
            if !self.plans_anew(&outcome, &request).await {
                return outcome;
            }
        }
    }

    /// Is a request to be planned anew, since a table was altered on its way? Then the alteration
    /// had time to come here.
    async fn plans_anew(&self, outcome: &Outcome, request: &Request<'_>) -> bool {
        if !outcome.is_outdated || self.shard.env.now() + REPLAN_PAUSE >= request.deadline {
            return false;
        }
        self.shard.env.mark("cas.outdated");
        self.shard.env.sleep(REPLAN_PAUSE).await;
        true
    }

    /// Prepares a statement, on every shard. The guard of an ordinary user adds to `warnings`,
    /// which go with a refusal too.
    ///
    /// # Errors
    /// If it makes no sense.
    pub async fn prepare(
        &self,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
        tracing: Option<&Tracing>,
        user: Option<&Rc<str>>,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedInfo, ErrorResponse> {
        if let Some(tracing) = tracing {
            tracing.begin_prepare(text);
            tracing.trace().note(&self.shard.env, || format!("Parsing {}", redacted(text)));
        }
        let prepared = self.statements.prepare(text, keyspace, is_shard_aware).await?;
        let entry = &prepared.entry;
        if let Some(user) = user
            && self.watch.is_guarded(user, false).await?
        {
            let guard = self.guardrails.new_guard();
            let checked = guard_plan(&entry.prepared.plan, &guard);
            warnings.extend(guard.take_warnings());
            checked.map_err(cql_error)?;
        }
        if let Plan::Role(statement) = &entry.prepared.plan
            && !self.auth.authenticates()
        {
            // Cassandra validates what it prepares: nobody has a name here, and so nothing is done
            // but refused
            Box::pin(self.auth.run_role(statement, None)).await.result?;
        }
        self.statements.spread(&prepared, is_shard_aware).await;
        let mut info = entry.info.clone();
        if !prepared.was_current && !entry.prepared.is_qualified {
            info.use_warning = Some(UseWarning::new(keyspace, keyspace, &info.id));
        }
        Ok(info)
    }

    /// What those who log requests want to know of a prepared statement.
    pub fn observed(&self, id: &[u8]) -> Option<audit::Statement> {
        self.statements.entry(id).ok().map(|entry| entry.observed())
    }

    /// Runs a prepared statement; also gives its id and the metadata that PREPARE announced.
    pub async fn execute(
        &self,
        id: &[u8],
        request: Request<'_>,
    ) -> (Outcome, Option<PreparedInfo>) {
        let mut entry = match self.statements.entry(id) {
            Ok(entry) => entry,
            Err(error) => return (error.into(), None),
        };
        if let Some(tracing) = &request.tracing {
            tracing.begin_execute(&entry, request.options);
        }
        loop {
            request.see_none();
            request.see(&entry.text, &entry.prepared);
            let given = &request.options.values;
            if let Err(error) = check_count(given, &entry.prepared.variables, "there") {
                return (error.into(), Some(entry.info.clone()));
            }
            let began = self.watch.slow.begin(&entry.prepared.plan);
            let outcome = self.run(&entry.prepared, &entry.info.result, &request).await;
            self.watch.slow.ended(began, entry.keyspace.as_deref(), &entry.text);
            if !self.plans_anew(&outcome, &request).await {
                let mut info = entry.info.clone();
                info.use_warning = entry.use_warning(request.keyspace.as_deref());
                return (outcome, Some(info));
            }
            entry = match self.statements.entry(id) {
                Ok(entry) => entry,
                Err(error) => return (error.into(), None),
            };
        }
    }

    async fn run(
        &self,
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
            let watched = self.watch.watch(request, is_warned_anyway);
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
                Box::pin(self.schema.change(ddl, user, request.guard().is_some())).await
            }
            Plan::Role(statement) => Box::pin(self.auth.run_role(statement, user)).await,
            Plan::Use(keyspace) => self.use_keyspace(keyspace),
            Plan::Truncate(table) => match request.guarded(Guard::drop_or_truncate) {
                Ok(()) => Box::pin(self.truncation.everywhere(table)).await,
                Err(refused) => refused.into(),
            },
            Plan::Describe(statement) => describe(&self.shard, &self.peers, statement, request),
        };
        if !prepared.warnings.is_empty() {
            outcome.warnings.splice(0..0, prepared.warnings.iter().cloned());
        }
        request.warn(&mut outcome);
        outcome
    }

    fn use_keyspace(&self, keyspace: &str) -> Outcome {
        let checked = match self.shard.config.lookup().flag("use_statements_enabled") {
            true => cql::ddl::check_use(keyspace, &self.shard.schema()),
            false => Err(CqlError::invalid(USE_PROHIBITED)),
        };
        let checked = checked.map_err(cql_error);
        Outcome::new(checked.map(|()| Answer::SetKeyspace(keyspace.to_owned())), Vec::new())
    }

    /// Runs a BATCH message, whose options are those of the request.
    pub async fn batch(&self, batch: &Batch<'_>, request: Request<'_>) -> Outcome {
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
        &self,
        batch: &Batch<'_>,
        request: &Request<'_>,
    ) -> Result<Outcome, ErrorResponse> {
        self.check_keyspace(request.options.keyspace)?;
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        request.see_none();
        let mut statements: Vec<Rc<Entry>> = Vec::with_capacity(batch.len());
        let mut values = Vec::with_capacity(batch.len());
        for entry in batch.entries() {
            let statement = match entry.statement {
                BatchStatement::Prepared(id) => self.statements.entry(id)?,
                BatchStatement::Text(text) => {
                    let planned =
                        self.statements.plan(text, keyspace.as_deref(), false, request.trace());
                    let (prepared, _) = planned.await?;
                    Rc::new(Entry::new(text, keyspace.as_deref(), prepared, 0))
                }
            };
            check_count(&entry.values, &statement.prepared.variables, "There")?;
            request.see(&statement.text, &statement.prepared);
            statements.push(statement);
        }
        for (entry, statement) in batch.entries().zip(&statements) {
            if !matches!(statement.prepared.plan, Plan::Modify(_)) {
                return Err(invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
                ));
            }
            values.push(Bound::new(entry.values, &statement.prepared.variables)?);
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
            Box::pin(self.watch.watch(request, false)).await?;
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
        Ok(self.writes.run_batch(kind, &parts, request, self.binder.now(request)).await)
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
