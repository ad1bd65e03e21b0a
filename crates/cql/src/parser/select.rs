//! SELECT.

use super::{Fault, K, Parser, Res};
use crate::ast::{Literal, LiteralKind, Ordering, QualifiedName, Select, Selectors, Term};
use crate::lexer::Kind;
use crate::system_keyspaces::is_system;

/// `JSON`, `DISTINCT` and what is selected.
type Clause = (bool, bool, Selectors);

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Res<Select> {
        self.expect_word(K::Select)?;
        let (json, distinct, selectors) = self.select_clause()?;
        self.expect_word(K::From)?;
        let table = self.table_name()?;
        let filter = if self.eat_word(K::Where) { self.relations()? } else { Vec::new() };
        let mut group_by = Vec::new();
        if self.eat_word(K::Group) {
            self.expect_word(K::By)?;
            group_by = self.comma_list(Self::selectable)?;
        }
        let mut order_by = Vec::new();
        if self.eat_word(K::Order) {
            self.expect_word(K::By)?;
            order_by = self.comma_list(Self::ordering)?;
        }
        let mut per_partition_limit = None;
        if self.eat_word(K::Per) {
            self.expect_words(&[K::Partition, K::Limit])?;
            per_partition_limit = Some(self.int_value()?);
        }
        let limit = if self.eat_word(K::Limit) { Some(self.int_value()?) } else { None };
        let allow_filtering = self.eat_word(K::Allow);
        if allow_filtering {
            self.expect_word(K::Filtering)?;
        }
        let timeout = if self.takes_timeout(&table) { self.timeout()? } else { None };
        Ok(Select {
            json,
            distinct,
            selectors,
            table,
            filter,
            group_by,
            order_by,
            per_partition_limit,
            limit,
            allow_filtering,
            timeout,
        })
    }

    /// `JSON` and `DISTINCT` are also names of columns: they are modifiers if a selection and
    /// `FROM` follow.
    fn select_clause(&mut self) -> Res<Clause> {
        if self.is(K::Json) {
            return self.modifier_or_column(
                |p| p.distinct_clause().map(|(distinct, selectors)| (true, distinct, selectors)),
                |p| p.selectors().map(|selectors| (false, false, selectors)),
            );
        }
        self.distinct_clause().map(|(distinct, selectors)| (false, distinct, selectors))
    }

    fn distinct_clause(&mut self) -> Res<(bool, Selectors)> {
        if self.is(K::Distinct) {
            return self.modifier_or_column(
                |p| p.selectors().map(|selectors| (true, selectors)),
                |p| p.selectors().map(|selectors| (false, selectors)),
            );
        }
        self.selectors().map(|selectors| (false, selectors))
    }

    /// Reads the word here as a modifier of what follows or, failing that, as a column. Of two
    /// faults the one further on is the better message. `json *` is a modifier whatever comes.
    fn modifier_or_column<T>(
        &mut self,
        modifier: impl FnOnce(&mut Self) -> Res<T>,
        column: impl FnOnce(&mut Self) -> Res<T>,
    ) -> Res<T> {
        if self.kind_at(1) == Kind::Star {
            self.skip();
            return modifier(self);
        }
        let mark = self.mark();
        self.skip();
        let fault = match modifier(self) {
            Ok(clause) if self.is(K::From) => return Ok(clause),
            Ok(_) => Box::new(Fault::Mismatch(self.at, "K_FROM")),
            Err(fault) => fault,
        };
        self.go_back(mark);
        match column(self) {
            Ok(clause) => Ok(clause),
            Err(other) if other.token() >= fault.token() => Err(other),
            Err(_) => Err(fault),
        }
    }

    fn ordering(&mut self) -> Res<Ordering> {
        let column = self.column()?;
        let mut ann_of = None;
        if self.eat_word(K::Ann) {
            self.expect_word(K::Of)?;
            ann_of = Some(self.term()?);
        }
        let descending = self.eat_word(K::Desc);
        if !descending {
            self.eat_word(K::Asc);
        }
        Ok(Ordering { column, ann_of, descending })
    }

    /// Is this what only the driver itself asks? Everybody else is refused as by Cassandra.
    fn takes_timeout(&self, table: &QualifiedName) -> bool {
        self.is_shard_aware && table.keyspace.as_deref().is_some_and(is_system)
    }

    /// `USING TIMEOUT duration`: no part of Cassandra's grammar.
    fn timeout(&mut self) -> Res<Option<Term>> {
        if !self.eat_word(K::Using) {
            return Ok(None);
        }
        if self.kind() != Kind::Ident || !self.source().eq_ignore_ascii_case("timeout") {
            return self.mismatch("TIMEOUT");
        }
        self.skip();
        if let Some(marker) = self.marker()? {
            return Ok(Some(Term::Marker(marker)));
        }
        if self.kind() != Kind::Duration {
            return self.mismatch("DURATION");
        }
        let text = self.source().to_owned();
        self.skip();
        Ok(Some(Term::Literal(Literal { kind: LiteralKind::Duration, text })))
    }
}
