//! Relations on the token of the partition key: `token(k) > ?` (`TokenRelation`,
//! `TokenRestriction`, `TokenFilter`).

use std::cmp::Ordering;

use schema::{Column, ColumnKind, Table};
use types::{CqlType, Token};

use crate::ast::{Operator, Term as Raw};
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::Term;
use crate::value::Bound;

/// What a WHERE clause asks of the token.
#[derive(Clone, Debug)]
pub(crate) struct TokenRestriction {
    start: Option<End>,
    end: Option<End>,
    /// Is it an equality? Then both ends are its value.
    equal: bool,
}

#[derive(Clone, Debug)]
struct End {
    term: Term,
    inclusive: bool,
}

/// A bound end: the token's value, of [`Table::token_type`], and whether it belongs.
pub(crate) type BoundEnd = (Box<[u8]>, bool);

impl TokenRestriction {
    /// Prepares a relation other than `!=`.
    pub(crate) fn prepare(
        table: &Table,
        names: &[String],
        operator: Operator,
        value: &Raw,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            columns.push(Scope::column(table, name)?);
        }
        check_columns(table, &columns)?;
        let ty = table.token_type();
        let spec = ColumnSpec::new(&table.keyspace, &table.name, "partition key token", ty);
        let term = Term::prepare(value, &table.keyspace, &spec, scope)?;
        let inclusive = matches!(operator, Operator::Gte | Operator::Lte | Operator::Eq);
        let end = Some(End { term, inclusive });
        Ok(match operator {
            Operator::Gt | Operator::Gte => Self { start: end, end: None, equal: false },
            Operator::Lt | Operator::Lte => Self { start: None, end, equal: false },
            _ => Self { start: end.clone(), end, equal: true },
        })
    }

    /// Adds a relation to one that there may be.
    pub(crate) fn add(old: &mut Option<Self>, new: Self, table: &Table) -> Result<(), CqlError> {
        let Some(old) = old else {
            *old = Some(new);
            return Ok(());
        };
        let names = names_of_key(table);
        if old.equal {
            return Err(CqlError::invalid(format!(
                "{names} cannot be restricted by more than one relation if it includes an Equal"
            )));
        }
        if new.equal {
            return Err(CqlError::invalid(format!(
                "Columns \"{names}\" cannot be restricted by both an equality and an inequality relation"
            )));
        }
        let ends = [("start", &mut old.start, new.start), ("end", &mut old.end, new.end)];
        for (which, old, new) in ends {
            if old.is_some() && new.is_some() {
                return Err(CqlError::invalid(format!(
                    "More than one restriction was found for the {which} bound on {names}"
                )));
            }
            *old = old.take().or(new);
        }
        Ok(())
    }

    /// The values of its start and its end.
    pub(crate) fn bind(
        &self,
        table: &Table,
        bind: &Bind<'_>,
    ) -> Result<(Option<BoundEnd>, Option<BoundEnd>), CqlError> {
        let one = |end: &Option<End>| end.as_ref().map(|end| end.bind(table, bind)).transpose();
        Ok((one(&self.start)?, one(&self.end)?))
    }

    /// The tokens that keys given by value must have.
    pub(crate) fn window<'t>(
        &self,
        table: &'t Table,
        bind: &Bind<'_>,
    ) -> Result<Window<'t>, CqlError> {
        let (start, end) = self.bind(table, bind)?;
        Ok(Window { table, start, end })
    }
}

impl End {
    fn bind(&self, table: &Table, bind: &Bind<'_>) -> Result<BoundEnd, CqlError> {
        match self.term.bind(bind)? {
            Bound::Bytes(value)
                if table.is_ordered_by_key() || value.len() == size_of::<Token>() =>
            {
                Ok((value.into_owned().into(), self.inclusive))
            }
            Bound::Bytes(_) | Bound::Null => Err(CqlError::invalid("Invalid null token value")),
            Bound::Unset => Err(CqlError::invalid("Invalid unset value for partition key token")),
        }
    }
}

/// Tokens that keys given by value must have. One that ends before it starts goes round the ring.
pub(crate) struct Window<'t> {
    table: &'t Table,
    start: Option<BoundEnd>,
    end: Option<BoundEnd>,
}

impl Window<'_> {
    /// Is a key, which has this token, within it?
    pub(crate) fn contains(&self, token: Token, key: &[u8]) -> bool {
        let ring = token.0.to_be_bytes();
        let token = if self.table.is_ordered_by_key() { key } else { &ring };
        let order = |end: &BoundEnd| compare_tokens(self.table, token, &end.0);
        let above = |start: &BoundEnd| order(start).is_gt() || (start.1 && order(start).is_eq());
        let below = |end: &BoundEnd| order(end).is_lt() || (end.1 && order(end).is_eq());
        match (&self.start, &self.end) {
            (Some(start), Some(end)) if compare_tokens(self.table, &start.0, &end.0).is_gt() => {
                above(start) || below(end)
            }
            (start, end) => start.as_ref().is_none_or(above) && end.as_ref().is_none_or(below),
        }
    }
}

/// The order of two tokens' values.
pub(crate) fn compare_tokens(table: &Table, a: &[u8], b: &[u8]) -> Ordering {
    match table.is_ordered_by_key() {
        true => table.compare_keys(a, b),
        false => CqlType::BigInt.compare(a, b),
    }
}

fn names_of_key(table: &Table) -> String {
    let names: Vec<&str> = table.partition_key.iter().map(|column| &*column.name).collect();
    names.join(", ")
}

fn check_columns(table: &Table, columns: &[&Column]) -> Result<(), CqlError> {
    let key = &table.partition_key;
    if columns.iter().copied().eq(key) {
        return Ok(());
    }
    let refuse = |message: String| Err(CqlError::invalid(message));
    if !key.iter().all(|column| columns.contains(&column)) {
        return refuse(
            "The token() function must be applied to all partition key components or none of them"
                .to_owned(),
        );
    }
    let duplicate =
        columns.iter().enumerate().any(|(i, c)| columns.iter().skip(i + 1).any(|d| c == d));
    if duplicate {
        return refuse(
            "The token() function contains duplicate partition key components".to_owned(),
        );
    }
    if columns.iter().any(|column| column.kind != ColumnKind::PartitionKey) {
        return refuse(
            "The token() function must contains only partition key components".to_owned(),
        );
    }
    refuse(format!(
        "The token function arguments must be in the partition key order: {}",
        names_of_key(table)
    ))
}
