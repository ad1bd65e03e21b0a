//! LIMIT, PER PARTITION LIMIT, and the deadline that our clients may give.

use schema::Table;
use types::{CqlType, Duration};

use crate::ast;
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::Term;
use crate::value::Bound;

/// No limit: what Cassandra counts down from, in paging states too.
pub const NO_LIMIT: u32 = i32::MAX as u32;

/// The limits of a SELECT.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    limit: Option<Term>,
    per_partition: Option<Term>,
    timeout: Option<Term>,
}

impl Limits {
    pub(super) fn prepare(
        select: &ast::Select,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let mut term = |raw: &Option<ast::Term>, name: &str, ty| {
            let spec = ColumnSpec::new(&table.keyspace, &table.name, name, ty);
            let raw = raw.as_ref();
            raw.map(|raw| Term::prepare(raw, &table.keyspace, &spec, scope)).transpose()
        };
        Ok(Self {
            limit: term(&select.limit, "[limit]", CqlType::Int)?,
            per_partition: term(
                &select.per_partition_limit,
                "[per_partition_limit]",
                CqlType::Int,
            )?,
            timeout: term(&select.timeout, "[timeout]", CqlType::Duration)?,
        })
    }

    /// LIMIT, [`NO_LIMIT`] without one.
    pub(super) fn limit(&self, bind: &Bind<'_>) -> Result<u32, CqlError> {
        bind_limit(self.limit.as_ref(), bind)
    }

    /// PER PARTITION LIMIT, [`NO_LIMIT`] without one.
    pub(super) fn per_partition(&self, bind: &Bind<'_>) -> Result<u32, CqlError> {
        bind_limit(self.per_partition.as_ref(), bind)
    }

    /// USING TIMEOUT, in nanoseconds.
    pub(super) fn timeout_nanos(&self, bind: &Bind<'_>) -> Result<Option<u64>, CqlError> {
        let Some(term) = &self.timeout else { return Ok(None) };
        let refused =
            || CqlError::invalid("The timeout must be a positive duration without months");
        match term.bind(bind)? {
            Bound::Unset => Ok(None),
            Bound::Null => Err(refused()),
            Bound::Bytes(value) => {
                let duration = Duration::from_bytes(&value).map_err(|_| refused())?;
                if duration.months != 0 || duration.is_negative() {
                    return Err(refused());
                }
                let days = i64::from(duration.days).saturating_mul(types::time::NANOS_PER_DAY);
                let nanos = u64::try_from(days.saturating_add(duration.nanos)).ok();
                nanos.filter(|nanos| *nanos > 0).map(Some).ok_or_else(refused)
            }
        }
    }
}

fn bind_limit(term: Option<&Term>, bind: &Bind<'_>) -> Result<u32, CqlError> {
    let Some(term) = term else { return Ok(NO_LIMIT) };
    let value = match term.bind(bind)? {
        Bound::Null => return Err(CqlError::invalid("Invalid null value of limit")),
        Bound::Unset => return Ok(NO_LIMIT),
        Bound::Bytes(value) => value,
    };
    let limit = CqlType::Int.as_i64(&value).unwrap_or_default();
    u32::try_from(limit)
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or_else(|| CqlError::invalid("LIMIT must be strictly positive"))
}
