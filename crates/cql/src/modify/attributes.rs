//! `USING TIMESTAMP` and `USING TTL`.

use rows::NO_TTL;
use schema::Table;
use types::CqlType;

use crate::ast;
use crate::context::{Bind, ExpirationOverflow};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::Term;
use crate::value::Bound;

/// The longest time to live, in seconds: 20 years (`Attributes.MAX_TTL`).
pub const MAX_TTL: i32 = 20 * 365 * 24 * 60 * 60;

/// The attributes of a statement.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Microseconds.
    pub timestamp: Option<Term>,
    /// Seconds.
    pub ttl: Option<Term>,
}

impl Attributes {
    /// Prepares attributes. The names are those of the table, or `[batch]`.
    pub fn prepare(
        timestamp: Option<&ast::Term>,
        ttl: Option<&ast::Term>,
        keyspace: &str,
        table: &str,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let mut term = |raw: Option<&ast::Term>, name, ty| match raw {
            Some(raw) => {
                let spec = ColumnSpec::new(keyspace, table, name, ty);
                Term::prepare(raw, keyspace, &spec, scope).map(Some)
            }
            None => Ok(None),
        };
        Ok(Self {
            timestamp: term(timestamp, "[timestamp]", CqlType::BigInt)?,
            ttl: term(ttl, "[ttl]", CqlType::Int)?,
        })
    }

    /// The timestamp of what is written; `otherwise` where the statement gives none.
    pub fn timestamp(&self, bind: &Bind<'_>, otherwise: i64) -> Result<i64, CqlError> {
        let Some(term) = &self.timestamp else { return Ok(otherwise) };
        match term.bind(bind)? {
            Bound::Null => Err(CqlError::invalid("Invalid null value of timestamp")),
            Bound::Unset => Ok(otherwise),
            Bound::Bytes(value) => CqlType::BigInt
                .as_i64(&value)
                .ok_or_else(|| CqlError::invalid("Invalid empty value of timestamp")),
        }
    }

    /// The time to live, 0 for none.
    pub fn ttl(
        &self,
        bind: &Bind<'_>,
        table: &Table,
        warnings: &mut Vec<String>,
    ) -> Result<i32, CqlError> {
        let default = table.params.default_time_to_live;
        let Some(term) = &self.ttl else {
            check_overflow(bind, table, default, true, warnings)?;
            return Ok(default);
        };
        let ttl = match term.bind(bind)? {
            Bound::Null => return Ok(NO_TTL),
            Bound::Unset => return Ok(default),
            Bound::Bytes(value) => CqlType::Int.as_i64(&value).unwrap_or(0),
        };
        if ttl < 0 {
            return Err(CqlError::invalid(format!(
                "A TTL must be greater or equal to 0, but was {ttl}"
            )));
        }
        let Some(ttl) = i32::try_from(ttl).ok().filter(|ttl| *ttl <= MAX_TTL) else {
            return Err(CqlError::invalid(format!(
                "ttl is too large. requested ({ttl}) maximum ({MAX_TTL})"
            )));
        };
        check_overflow(bind, table, ttl, false, warnings)?;
        Ok(ttl)
    }
}

fn check_overflow(
    bind: &Bind<'_>,
    table: &Table,
    ttl: i32,
    is_default: bool,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let limit = bind.limits.max_deletion_time;
    // by this node's clock, whatever time the request claims
    if ttl == NO_TTL || (bind.now_millis / 1000).saturating_add(ttl.into()) <= limit {
        return Ok(());
    }
    let date = if limit > i64::from(i32::MAX) {
        "2106-02-07T06:28:13+00:00"
    } else {
        "2038-01-19T03:14:06+00:00"
    };
    let default = if is_default { "default " } else { "" };
    let request = format!(
        "Request on table {}.{} with {default}ttl of {ttl} seconds exceeds maximum supported expiration date of {date}",
        table.keyspace, table.name
    );
    match bind.limits.expiration_overflow {
        ExpirationOverflow::Reject => Err(CqlError::invalid(format!(
            "{request}. In order to avoid this use a lower TTL, change the expiration date overflow policy or upgrade to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details."
        ))),
        ExpirationOverflow::Cap => {
            warnings.push(format!(
                "{request} and will have its expiration capped to that date. In order to avoid this use a lower TTL or upgrade to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details."
            ));
            Ok(())
        }
        ExpirationOverflow::CapSilently => Ok(()),
    }
}
