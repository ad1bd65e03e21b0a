//! The audit log and the full query log of a node: which requests become entries, on each shard,
//! and what the operator turns on and off, on the first one.
//!
//! `Handler` asks [`RequestLogs::watch`] once a request; that is all that it costs while both logs
//! are off. What is watched becomes entries when it has ended, before it is answered.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use audit::{
    AuditOptions, Changes, Client, Failure, FailureKind, Filter, Logger, Queried, QueryRecord,
    QueueOptions, Refused, audit_record,
};
use cluster::{Observed, Shard};
use config::Config;
use env::Env;
use logging::{Format, Line, Place, Thread};
use metrics::Level;
use protocol::{Batch, BatchKind, ErrorDetail, ErrorResponse, QueryOptions, Value};
use server::Context;
use storage::shards::{Remote, Stopping};

use crate::all_shards::ask_all;
use crate::context::Context as Start;
use crate::journal::Journal;
use crate::log_file::{LogFile, format_of};
use crate::request_writer::{
    Entry, Log, NO_DIRECTORY, RequestWriter, Sinks, audit_options, query_options, starts_audited,
};

/// Who is nobody in particular, where nobody logs in.
const ANONYMOUS: &str = "anonymous";

/// Of a statement that was not understood.
const NO_MARKERS: &[&str] = &[];

/// What shards log.
#[derive(Clone, Debug, Default)]
struct Active {
    audit: Option<ActiveAudit>,
    queries: Option<Room>,
}

#[derive(Clone, Debug)]
struct ActiveAudit {
    filter: Filter,
    logger: Logger,
    room: Room,
}

/// What is done where many bytes wait to be written.
#[derive(Clone, Copy, Debug)]
struct Room {
    waits: bool,
    bytes_max: u64,
}

/// What the operator set; on the first shard.
#[derive(Clone, Debug)]
struct Settings {
    /// Of the configuration.
    audit: AuditOptions,
    /// As the audit log is written, while it is.
    active_audit: Option<AuditOptions>,
    /// The audit log is on as the configuration has it.
    is_configured: bool,
    /// Of the configuration.
    queries: QueueOptions,
    /// As the full query log is written, while it is.
    active_queries: Option<QueueOptions>,
}

/// Both logs, on a shard.
pub(crate) struct RequestLogs {
    env: Env,
    others: Remote<Self>,
    journal: Rc<Journal>,
    config: Arc<Config>,
    /// None where nothing is written.
    writer: Option<RequestWriter>,
    host: SocketAddr,
    is_on: Cell<bool>,
    active: RefCell<Rc<Active>>,
    settings: RefCell<Settings>,
}

/// A request that is watched.
pub(crate) struct Watched {
    /// What is seen of it.
    pub observed: Rc<Observed>,
    /// When it began, in milliseconds since 1970.
    millis: i64,
}

impl Room {
    fn of(options: &QueueOptions) -> Self {
        let bytes_max = u64::try_from(options.max_queue_weight).unwrap_or_default();
        Self { waits: options.block, bytes_max }
    }
}

impl ActiveAudit {
    fn of(options: &AuditOptions) -> Option<Self> {
        let logger = options.logger().ok()?;
        Some(Self { filter: options.filter(), logger, room: Room::of(&options.queue) })
    }
}

fn failure(error: &ErrorResponse) -> Failure<'_> {
    let kind = match &error.detail {
        ErrorDetail::Unauthorized => FailureKind::Unauthorized,
        ErrorDetail::BadCredentials => FailureKind::Authentication,
        ErrorDetail::SyntaxError => FailureKind::Syntax,
        ErrorDetail::Unprepared { .. } => FailureKind::Unprepared,
        _ => FailureKind::Other,
    };
    Failure { kind, message: &error.message }
}

impl RequestLogs {
    /// As the configuration has them.
    pub fn new(context: &Start, shard: &Shard, others: Remote<Self>) -> Rc<Self> {
        let Start { env, config, journal, .. } = context;
        let identity = shard.identity();
        let host = SocketAddr::new(identity.broadcast, identity.storage_port);
        let writer = journal.request_writer().cloned();
        let audit = audit_options(config);
        let is_audited = writer.is_some() && starts_audited(config);
        let active_audit = is_audited.then(|| audit.clone());
        let active =
            Active { audit: active_audit.as_ref().and_then(ActiveAudit::of), queries: None };
        let settings = Settings {
            audit,
            active_audit,
            is_configured: is_audited,
            queries: query_options(config),
            active_queries: None,
        };
        Rc::new(Self {
            env: env.clone(),
            others,
            journal: Rc::clone(journal),
            config: Arc::clone(config),
            writer,
            host,
            is_on: Cell::new(active.audit.is_some()),
            active: RefCell::new(Rc::new(active)),
            settings: RefCell::new(settings),
        })
    }

    /// A request begins: is it watched?
    #[inline]
    pub fn watch(&self) -> Option<Watched> {
        self.is_on.get().then(|| self.begin())
    }

    #[cold]
    fn begin(&self) -> Watched {
        Watched { observed: Rc::default(), millis: self.millis() }
    }

    fn millis(&self) -> i64 {
        self.env.unix_micros() / 1000
    }

    /// Logs entries of a client's that pass the filter. `make` makes them.
    async fn audit(&self, context: &Context, make: impl FnOnce(&Client<'_>) -> Vec<audit::Entry>) {
        let active = Rc::clone(&self.active.borrow());
        let (Some(writer), Some(active)) = (&self.writer, &active.audit) else { return };
        let session = &context.session;
        let (user, keyspace) = (session.user(), session.keyspace());
        let is_open = !self.config.auth.authenticates;
        let client = Client {
            user: user.as_deref().or(is_open.then_some(ANONYMOUS)),
            host: self.host,
            source: session.remote,
            keyspace: keyspace.as_deref(),
        };
        for entry in make(&client).iter().filter(|entry| active.filter.pass(entry)) {
            let entry = match active.logger {
                Logger::File => Entry::Line(self.line(entry.text()), self.format()),
                Logger::Bin => Entry::Record(audit_record(&entry.text()), self.millis()),
            };
            self.put(writer, Log::Audit, entry, active.room).await;
        }
    }

    fn format(&self) -> Format {
        format_of(&self.config)
    }

    fn line(&self, message: String) -> Line {
        let place = Place::from(std::panic::Location::caller());
        let thread = Thread::Shard(self.others.me());
        Line { millis: self.millis(), level: Level::Info, thread, place, message }
    }

    async fn put(&self, writer: &RequestWriter, log: Log, entry: Entry, room: Room) {
        if room.waits {
            writer.put(&self.env, log, entry, room.bytes_max).await;
        } else if writer.offer(log, entry, room.bytes_max).is_err() {
            let name = match log {
                Log::Audit => "audit log",
                Log::Queries => "full query log",
            };
            self.journal.say_seldom(
                Level::Warn,
                format!(
                    "dropped entries of the {name}: max_queue_weight bytes wait for the disk, and \
                     block is false"
                ),
            );
        }
        let lost = writer.take_lost();
        if lost > 0 {
            self.journal.say_seldom(
                Level::Error,
                "cannot write entries of the audit log or the full query log: look at the disk \
                 and at standard error; retrying every 5 s"
                    .to_owned(),
            );
        }
    }

    /// A request for the full query log.
    async fn record(
        &self,
        context: &Context,
        watched: &Watched,
        options: &QueryOptions<'_>,
        queried: Queried<'_>,
    ) {
        let active = Rc::clone(&self.active.borrow());
        let (Some(writer), Some(room)) = (&self.writer, active.queries) else { return };
        let version = context.session.version;
        let keyspace = context.session.keyspace();
        let times = watched.observed.times();
        let (mut bytes, mut is_read) = (Vec::new(), false);
        match watched.observed.statements().first() {
            Some(seen) => {
                options.write(version, &seen.markers, &mut bytes);
                // Cassandra makes no timestamp for a read
                is_read = seen.statement.kind == audit::Kind::Select;
            }
            None => options.write(version, NO_MARKERS, &mut bytes),
        }
        let record = QueryRecord {
            start_millis: watched.millis,
            version: version.number(),
            options: &bytes,
            timestamp: times
                .filter(|_| options.timestamp.is_none() && !is_read)
                .map(|(timestamp, _)| timestamp),
            now_seconds: times
                .filter(|_| options.now_in_seconds.is_none())
                .and_then(|(_, seconds)| i32::try_from(seconds).ok()),
            keyspace: keyspace.as_deref(),
            queried,
        };
        let entry = Entry::Record(record.encode(), self.millis());
        self.put(writer, Log::Queries, entry, room).await;
    }

    /// A QUERY ended.
    pub async fn query(
        &self,
        context: &Context,
        (text, options): (&str, &QueryOptions<'_>),
        watched: &Watched,
        error: Option<&ErrorResponse>,
    ) {
        let statement = watched.observed.statements().first().map(|seen| seen.statement.clone());
        let now = self.millis();
        let make = |client: &Client<'_>| match (error, &statement) {
            (Some(error), statement) => {
                vec![client.failed(statement.as_ref(), text, failure(error), now)]
            }
            (None, Some(statement)) => vec![client.ran(statement, text, watched.millis)],
            (None, None) => Vec::new(),
        };
        self.audit(context, make).await;
        if let (None, Some(statement)) = (error, &statement) {
            let text = statement.conceal(text);
            self.record(context, watched, options, Queried::Single(&text)).await;
        }
    }

    /// An EXECUTE ended.
    pub async fn execute(
        &self,
        context: &Context,
        options: &QueryOptions<'_>,
        watched: &Watched,
        error: Option<&ErrorResponse>,
    ) {
        let seen = {
            let statements = watched.observed.statements();
            statements.first().map(|seen| (seen.statement.clone(), seen.text.clone()))
        };
        let now = self.millis();
        let make = |client: &Client<'_>| match (error, &seen) {
            (Some(error), seen) => {
                let statement = seen.as_ref().map(|(statement, text)| (statement, text.as_str()));
                client.failed_prepared(statement, failure(error), now).into_iter().collect()
            }
            (None, Some((statement, text))) => vec![client.ran(statement, text, watched.millis)],
            (None, None) => Vec::new(),
        };
        self.audit(context, make).await;
        if let (None, Some((statement, text))) = (error, &seen) {
            let text = statement.conceal(text);
            self.record(context, watched, options, Queried::Single(&text)).await;
        }
    }

    /// A BATCH ended.
    pub async fn batch(
        &self,
        context: &Context,
        batch: &Batch<'_>,
        watched: &Watched,
        error: Option<&ErrorResponse>,
    ) {
        let statements: Vec<_> = {
            let seen = watched.observed.statements();
            seen.iter().map(|seen| (seen.statement.clone(), seen.text.clone())).collect()
        };
        let now = self.millis();
        let make = |client: &Client<'_>| match error {
            Some(error) => {
                let texts = statements.iter().map(|(_, text)| text.as_str());
                let level = batch.options.consistency.name();
                vec![client.failed_batch(texts, level, failure(error), now)]
            }
            None => {
                let parts = statements.iter().map(|(statement, text)| (statement, text.as_str()));
                client.ran_batch(parts, &self.random_id(), watched.millis)
            }
        };
        self.audit(context, make).await;
        if error.is_none() {
            let texts = statements.iter().map(|(_, text)| text.as_str()).collect();
            let value = |value| match value {
                Value::Null => None,
                Value::Unset => Some(&[][..]),
                Value::Bytes(bytes) => Some(bytes),
            };
            let values =
                batch.entries().map(|entry| entry.values.iter().map(value).collect()).collect();
            let kind = match batch.kind {
                BatchKind::Logged => "LOGGED",
                BatchKind::Unlogged => "UNLOGGED",
                BatchKind::Counter => "COUNTER",
            };
            let queried = Queried::Batch(kind, texts, values);
            self.record(context, watched, &batch.options, queried).await;
        }
    }

    /// A random UUID.
    fn random_id(&self) -> String {
        let mut bytes = [0; 16];
        self.env.fill_random(&mut bytes);
        let mut number = u128::from_be_bytes(bytes);
        // version 4, variant 2
        number = number & !(0xf << 76) | 4 << 76;
        number = number & !(3 << 62) | 2 << 62;
        let hex = format!("{number:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        parts.join("-")
    }

    /// A PREPARE ended, well with this statement.
    pub async fn prepare(
        &self,
        context: &Context,
        text: &str,
        ended: Result<Option<audit::Statement>, &ErrorResponse>,
    ) {
        let now = self.millis();
        let make = |client: &Client<'_>| match &ended {
            Ok(Some(statement)) => vec![client.prepared(statement, text, now)],
            // it is forgotten already
            Ok(None) => Vec::new(),
            Err(error) => vec![client.not_prepared(text, failure(error), now)],
        };
        self.audit(context, make).await;
    }

    /// Somebody logged in as `user`, or could not.
    pub async fn login(&self, context: &Context, ended: Result<&str, &ErrorResponse>) {
        let now = self.millis();
        let make = |client: &Client<'_>| {
            vec![match ended {
                Ok(user) => Client { user: Some(user), ..client.clone() }.logged_in(now),
                Err(error) => client.not_logged_in(failure(error), now),
            }]
        };
        self.audit(context, make).await;
    }
}

/// Why a verb is not carried out.
#[derive(Debug)]
pub(crate) enum VerbRefused {
    /// It makes no sense.
    Options(Refused),
    /// Nothing is written in this world, or the node ends.
    Stopping,
}

impl From<Refused> for VerbRefused {
    fn from(refused: Refused) -> Self {
        Self::Options(refused)
    }
}

impl From<Stopping> for VerbRefused {
    fn from(_: Stopping) -> Self {
        Self::Stopping
    }
}

fn bad_use<T>(text: impl Into<String>) -> Result<T, VerbRefused> {
    Err(Refused::BadUse(text.into()).into())
}

/// What the operator asks; on the first shard.
impl RequestLogs {
    async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Sinks) -> T + Send + 'static,
    ) -> Result<T, VerbRefused> {
        let Some(writer) = &self.writer else { return Err(VerbRefused::Stopping) };
        writer.ask(&self.env, what).await.ok_or(VerbRefused::Stopping)
    }

    /// Has all shards log as the settings are.
    async fn apply(&self) -> Result<(), VerbRefused> {
        let active = {
            let settings = self.settings.borrow();
            Active {
                audit: settings.active_audit.as_ref().and_then(ActiveAudit::of),
                queries: settings.active_queries.as_ref().map(Room::of),
            }
        };
        let set = move |logs: &Rc<Self>| {
            logs.is_on.set(active.audit.is_some() || active.queries.is_some());
            *logs.active.borrow_mut() = Rc::new(active.clone());
        };
        ask_all(&self.others, set).await?;
        Ok(())
    }

    /// Is the audit log on, and with which options? With those of the configuration, if not.
    pub fn audit_settings(&self) -> (bool, AuditOptions) {
        let settings = self.settings.borrow();
        let active = settings.active_audit.as_ref();
        (active.is_some(), active.unwrap_or(&settings.audit).clone())
    }

    /// The same of the full query log.
    pub fn query_settings(&self) -> (bool, QueueOptions) {
        let settings = self.settings.borrow();
        let active = settings.active_queries.as_ref();
        (active.is_some(), active.unwrap_or(&settings.queries).clone())
    }

    /// `enableauditlog` (`AuditLogManager.enable`): with the same logger, only the filter changes.
    pub async fn enable_audit(&self, changes: &Changes) -> Result<(), VerbRefused> {
        let settings = self.settings.borrow().clone();
        let new = settings.audit.with(changes)?;
        let logger = new.logger()?;
        let lists = new.filter().lists();
        let active = settings.active_audit.as_ref();
        match active.filter(|active| active.logger() == Ok(logger)) {
            Some(_) => {
                let mut settings = self.settings.borrow_mut();
                if settings.is_configured {
                    // Cassandra has one object for both
                    settings.audit.lists = lists.clone();
                }
                if let Some(active) = &mut settings.active_audit {
                    active.lists = lists;
                }
            }
            None => {
                let new = AuditOptions { lists, ..new };
                self.open_audit(&new, logger).await?;
                let mut settings = self.settings.borrow_mut();
                settings.active_audit = Some(new);
                settings.is_configured = false;
            }
        }
        self.apply().await?;
        let shown = self.settings.borrow().active_audit.as_ref().map(|options| {
            let [ik, ek, ic, ec, iu, eu] = &options.lists;
            format!(
                "AuditLog is enabled: logger {}, audit_logs_dir {}, included_keyspaces '{ik}', \
                 excluded_keyspaces '{ek}', included_categories '{ic}', excluded_categories \
                 '{ec}', included_users '{iu}', excluded_users '{eu}'",
                options.logger, options.queue.directory
            )
        });
        shown.into_iter().for_each(|line| self.journal.say(Level::Info, line));
        Ok(())
    }

    async fn open_audit(&self, options: &AuditOptions, logger: Logger) -> Result<(), VerbRefused> {
        if options.queue.directory.is_empty() {
            return bad_use(NO_DIRECTORY);
        }
        let cycle = options.queue.check()?;
        let directory = PathBuf::from(&options.queue.directory);
        let bytes_max = u64::try_from(options.queue.max_log_size).unwrap_or_default();
        let config = Arc::clone(&self.config);
        let open = move |sinks: &mut Sinks| match logger {
            Logger::File => sinks.open_lines(LogFile::audit(&config, directory)),
            Logger::Bin => sinks.open_audit((&directory, cycle), bytes_max),
        };
        self.ask(open).await?.or_else(|error| bad_use(error.to_string()))
    }

    /// `disableauditlog`.
    pub async fn disable_audit(&self) -> Result<(), VerbRefused> {
        self.settings.borrow_mut().active_audit = None;
        self.settings.borrow_mut().is_configured = false;
        self.apply().await?;
        self.ask(Sinks::close_audit).await?;
        self.journal.say(Level::Info, "Auditlog is disabled".to_owned());
        Ok(())
    }

    /// `enablefullquerylog`.
    pub async fn enable_queries(&self, changes: &Changes) -> Result<(), VerbRefused> {
        let settings = self.settings.borrow().clone();
        let new = settings.queries.with(changes)?;
        if settings.active_queries.is_some() {
            return bad_use("Binlog is already configured");
        }
        let cycle = new.check()?;
        let directory = PathBuf::from(&new.directory);
        let bytes_max = u64::try_from(new.max_log_size).unwrap_or_default();
        let open = move |sinks: &mut Sinks| sinks.open_queries((&directory, cycle), bytes_max);
        if let Err(error) = self.ask(open).await? {
            use std::io::ErrorKind as E;
            return match error.kind() {
                E::AlreadyExists | E::InvalidInput => bad_use(error.to_string()),
                E::PermissionDenied => bad_use("path is not readable, writable, and executable"),
                _ => bad_use("path exists and is not a directory or couldn't be created"),
            };
        }
        let line = format!(
            "full query log is enabled: log_dir {}, roll_cycle {}",
            new.directory, new.roll_cycle
        );
        self.settings.borrow_mut().active_queries = Some(new);
        self.apply().await?;
        self.journal.say(Level::Info, line);
        Ok(())
    }

    /// `disablefullquerylog`.
    pub async fn disable_queries(&self) -> Result<(), VerbRefused> {
        let was = self.settings.borrow_mut().active_queries.take();
        self.apply().await?;
        self.ask(Sinks::close_queries).await?;
        let line = match was {
            Some(was) => format!("Stopping full query logging to {}", was.directory),
            None => "Full query log already stopped".to_owned(),
        };
        self.journal.say(Level::Info, line);
        Ok(())
    }

    /// `resetfullquerylog`: turns it off, and removes its files where it was and where the
    /// configuration has it.
    pub async fn reset_queries(&self) -> Result<(), VerbRefused> {
        let was = self.settings.borrow_mut().active_queries.take();
        let configured = self.settings.borrow().queries.directory.clone();
        self.apply().await?;
        let used = was.map(|was| was.directory);
        let directories: Vec<PathBuf> = [Some(configured), used]
            .into_iter()
            .flatten()
            .filter(|directory| !directory.is_empty())
            .map(PathBuf::from)
            .collect();
        let shown = format!("Stopping full query log. Cleaning {directories:?}.");
        let clean = move |sinks: &mut Sinks| {
            sinks.close_queries();
            directories.iter().try_for_each(|directory| sinks.clean(directory))
        };
        let cleaned = self.ask(clean).await?;
        self.journal.say(Level::Info, shown);
        cleaned.map_err(|error| Refused::Failed(error.to_string()).into())
    }
}
