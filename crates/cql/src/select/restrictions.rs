//! The WHERE clause as a whole: which restrictions find partitions and rows, which would have to
//! filter, and the checks in Cassandra's order (`StatementRestrictions`).

use std::sync::Arc;

use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::ast;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::select::filter::Filter;
use crate::select::indexed;
use crate::select::operand::Operand;
use crate::select::relation::{Understood, understand};
use crate::select::restriction::{Ask, Restriction, Set};
use crate::term::Term;
use crate::token::TokenRestriction;

/// The answer to a read that would have to look at more rows than it gives.
pub(super) const NEEDS_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

/// The restrictions of a SELECT.
#[derive(Clone, Debug)]
pub(super) struct Restrictions {
    /// Of columns of the partition key.
    pub keys: Set,
    /// Of the token of the partition key.
    pub token: Option<TokenRestriction>,
    /// Of clustering columns.
    pub clustering: Set,
    /// Of regular and static columns.
    pub others: Set,
    /// Does the read go over a range of partitions instead of some known by key?
    pub is_range: bool,
    /// What rows must pass beside being in the range, if anything.
    pub filter: Option<Filter>,
    /// Does an index serve one of them?
    is_indexed: bool,
    /// Is the read one that Cassandra does by an index?
    pub uses_index: bool,
    /// Are rows tested for what is asked of the partition key?
    tests_keys: bool,
    /// Are rows tested for what is asked of clustering columns?
    tests_clustering: bool,
}

impl Restrictions {
    /// Understands and checks a WHERE clause.
    pub(super) fn prepare(
        select: &ast::Select,
        table: &Arc<Table>,
        only_statics: bool,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        let mut this = Self {
            keys: Set::default(),
            token: None,
            clustering: Set::default(),
            others: Set::default(),
            is_range: false,
            filter: None,
            is_indexed: false,
            uses_index: false,
            tests_keys: false,
            tests_clustering: false,
        };
        let is_expression = |r: &&ast::Relation| matches!(r, ast::Relation::Expression(..));
        for relation in select.filter.iter().filter(|r| !is_expression(r)) {
            match understand(relation, table, scope)? {
                Understood::Token(token) => TokenRestriction::add(&mut this.token, token, table)?,
                Understood::Columns(new) => this.add(new, table, select.allow_filtering)?,
            }
        }
        this.add_ann(select, table, scope)?;
        check_expressions(select, table)?;
        let is_served = |one: &Restriction| indexed::is_served(table, one);
        this.is_indexed = this.sets().iter().any(|set| set.iter().any(is_served));
        this.process_keys(select, table)?;
        if only_statics && !this.clustering.is_empty() {
            return Err(CqlError::invalid(
                "Cannot restrict clustering columns when selecting only static columns",
            ));
        }
        this.process_clustering(select, table)?;
        this.process_others(select, table)?;
        Ok(this)
    }

    fn add(
        &mut self,
        new: Restriction,
        table: &Table,
        allow_filtering: bool,
    ) -> Result<(), CqlError> {
        match new.kind {
            ColumnKind::PartitionKey => self.keys.add(new, table),
            ColumnKind::Clustering => self.add_clustering(new, table, allow_filtering),
            ColumnKind::Regular | ColumnKind::Static => self.others.add(new, table),
        }
    }

    fn add_clustering(
        &mut self,
        new: Restriction,
        table: &Table,
        allow_filtering: bool,
    ) -> Result<(), CqlError> {
        let (new_first, new_is_slice) = (new.first(), new.is_slice());
        let is_free = allow_filtering || indexed::is_served(table, &new);
        let before = self.clustering.last().map(|last| (last.first(), last.is_slice()));
        self.clustering.add(new, table)?;
        let (Some((last_first, last_is_slice)), false) = (before, is_free) else {
            return Ok(());
        };
        let name = |at: u16| table.clustering.get(usize::from(at)).map_or("", |c| &c.name);
        if last_is_slice && new_first > last_first {
            return Err(CqlError::invalid(format!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                name(new_first),
                name(last_first)
            )));
        }
        if new_first < last_first && new_is_slice {
            return Err(CqlError::invalid(format!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                self.clustering.name_after(new_first).unwrap_or_default(),
                name(new_first)
            )));
        }
        Ok(())
    }

    /// ORDER BY .. ANN OF restricts too; no index that could do it is served.
    fn add_ann(
        &mut self,
        select: &ast::Select,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let mut anns = select.order_by.iter().filter(|ordering| ordering.ann_of.is_some());
        let Some(ordering) = anns.next() else { return Ok(()) };
        if anns.next().is_some() {
            return Err(CqlError::invalid("Cannot specify more than one ANN ordering"));
        }
        if select.order_by.len() > 1 {
            return Err(CqlError::invalid("ANN ordering does not support any other ordering"));
        }
        if ordering.descending {
            return Err(CqlError::invalid("Descending ANN ordering is not supported"));
        }
        let column = Scope::column(table, &ordering.column)?;
        let raw = ordering.ann_of.as_ref().unwrap_or(&ast::Term::Null);
        let spec = ColumnSpec::of_column(table, column);
        let term = Term::prepare(raw, &table.keyspace, &spec, scope)?;
        drop(Operand::One(term));
        self.others.add(
            Restriction {
                kind: column.kind,
                columns: vec![column.index],
                multi: false,
                ask: Ask::Near,
            },
            table,
        )
    }

    /// Is the partition key used by value at all, not by token alone?
    fn keys_need_filtering(&self, table: &Table) -> bool {
        !self.keys.is_empty()
            && (self.keys.len() < table.partition_key.len()
                || self.keys.has_slice
                || self.keys.has_contains)
    }

    /// Is it the token that gives the range? With the whole key known a token only sorts out keys.
    pub(super) fn is_on_token(&self, table: &Table) -> bool {
        self.token.is_some() && (self.keys.is_empty() || self.keys_need_filtering(table))
    }

    fn process_keys(&mut self, select: &ast::Select, table: &Table) -> Result<(), CqlError> {
        let filters = self.keys_need_filtering(table);
        if filters && !select.allow_filtering && !filters_freely(table) && !self.has_index(table) {
            return Err(CqlError::invalid(NEEDS_FILTERING));
        }
        self.is_range = self.keys.is_empty() || self.is_on_token(table) || filters;
        let nothing_of_key = self.keys.is_empty() && self.token.is_none();
        self.uses_index = self.is_indexed && (nothing_of_key || filters);
        self.tests_keys = self.uses_index || filters;
        Ok(())
    }

    /// Would some clustering restriction have to filter: one on contents, or behind a gap?
    fn clustering_needs_filtering(&self) -> bool {
        let mut place = 0;
        for restriction in self.clustering.iter() {
            if restriction.is_contains() || restriction.first() != place {
                return true;
            }
            if !restriction.is_slice() {
                place = restriction.last() + 1;
            }
        }
        false
    }

    fn process_clustering(&mut self, select: &ast::Select, table: &Table) -> Result<(), CqlError> {
        if !select.allow_filtering && !self.has_index(table) {
            self.check_clustering(table)?;
        }
        let filters = self.clustering_needs_filtering();
        let is_served = self.clustering.iter().any(|one| indexed::is_served(table, one));
        self.uses_index |= (self.is_indexed && filters) || (self.is_range && is_served);
        self.tests_clustering = self.uses_index || filters;
        Ok(())
    }

    /// What neither an index nor ALLOW FILTERING makes up for.
    fn check_clustering(&self, table: &Table) -> Result<(), CqlError> {
        if self.clustering.has_contains {
            return Err(CqlError::invalid(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
            ));
        }
        if self.clustering_needs_filtering() {
            let wanted = table.clustering.iter().map(|column| &*column.name);
            for (wanted, (_, restricted)) in wanted.zip(self.clustering.places()) {
                if wanted != restricted {
                    return Err(CqlError::invalid(format!(
                        "PRIMARY KEY column \"{restricted}\" cannot be restricted as preceding column \"{wanted}\" is not restricted"
                    )));
                }
            }
        }
        Ok(())
    }

    fn process_others(&mut self, select: &ast::Select, table: &Table) -> Result<(), CqlError> {
        self.check_vectors(table)?;
        let has_custom = self.has_custom_index(table);
        let narrows = self.is_range || self.tests_keys || self.tests_clustering;
        if has_custom && (narrows || !self.others.is_empty()) {
            return Err(CqlError::unsupported("A read through a custom index"));
        }
        if !self.others.is_empty() {
            self.uses_index |= self.is_indexed;
            if !self.is_indexed && !select.allow_filtering && !filters_freely(table) {
                return Err(CqlError::invalid(NEEDS_FILTERING));
            }
        }
        if self.uses_index && self.key_has_in(table) {
            return Err(CqlError::invalid(
                "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
            ));
        }
        self.filter = Filter::new(
            self.tests_keys.then_some(&self.keys),
            self.tests_clustering.then_some(&self.clustering),
            &self.others,
            table,
        );
        Ok(())
    }

    /// ANN needs an index of a vector, and a vector with an index may be asked for nothing else.
    fn check_vectors(&self, table: &Table) -> Result<(), CqlError> {
        let column = |one: &Restriction| table.columns_of(one.kind).get(usize::from(one.first()));
        let near = self.others.iter().find(|restriction| matches!(restriction.ask, Ask::Near));
        if let Some(near) = near.map(column) {
            check_ann_column(near)?;
            if !near.is_some_and(|near| indexed::is_indexed(table, &near.name)) {
                return Err(CqlError::invalid(
                    "ANN ordering by vector requires the column to be indexed",
                ));
            }
            return Ok(());
        }
        let is_vector = |column: &&Column| matches!(column.ty, CqlType::Vector { .. });
        let vector = self.others.iter().filter_map(column).find(is_vector);
        if vector.is_some_and(|vector| indexed::is_indexed(table, &vector.name)) {
            return Err(CqlError::invalid("Vector indexes only support ANN queries"));
        }
        Ok(())
    }

    /// The last check: a read that skips rows, without ALLOW FILTERING.
    pub(super) fn check_filtering(
        &self,
        select: &ast::Select,
        table: &Table,
    ) -> Result<(), CqlError> {
        let is_wide = self.is_range || self.uses_index;
        if is_wide && !select.allow_filtering && !filters_freely(table) && self.skips_rows(table) {
            return Err(CqlError::invalid(NEEDS_FILTERING));
        }
        Ok(())
    }

    /// Are rows read that are not wanted, were each index to be had?
    fn skips_rows(&self, table: &Table) -> bool {
        let tested = [
            (self.tests_keys, &self.keys),
            (self.tests_clustering, &self.clustering),
            (true, &self.others),
        ];
        let tested = tested.iter().filter(|(is_tested, _)| *is_tested);
        let tested: Vec<&Restriction> = tested.flat_map(|(_, set)| set.iter()).collect();
        match tested.is_empty() {
            true => !self.clustering.is_empty(),
            false => !indexed::is_enough(table, &tested),
        }
    }

    fn sets(&self) -> [&Set; 3] {
        [&self.keys, &self.clustering, &self.others]
    }

    /// Does an index serve a restriction, or would one of a class that is not served?
    fn has_index(&self, table: &Table) -> bool {
        self.is_indexed || self.has_custom_index(table)
    }

    /// Is a restricted column the target of an index of a class that is not served?
    fn has_custom_index(&self, table: &Table) -> bool {
        table.indexes.values().filter(|index| index.is_custom()).any(|index| {
            let target = index.options.get("target").map_or("", String::as_str);
            self.sets().iter().any(|set| set.places().any(|(_, name)| is_target(target, name)))
        })
    }

    /// Is a column restricted by an equality?
    pub(super) fn is_equal(&self, column: &Column) -> bool {
        let set = match column.kind {
            ColumnKind::PartitionKey => &self.keys,
            ColumnKind::Clustering => &self.clustering,
            ColumnKind::Regular | ColumnKind::Static => &self.others,
        };
        set.of(column).is_some_and(Restriction::is_equal)
    }

    /// Is the partition key restricted by IN?
    pub(super) fn key_has_in(&self, table: &Table) -> bool {
        self.keys.has_in && !self.is_on_token(table)
    }

    /// Are there restrictions of regular columns?
    fn has_regulars(&self) -> bool {
        self.others.iter().any(|restriction| restriction.kind == ColumnKind::Regular)
    }

    /// Does a partition that has static values and no rows give a row?
    pub(super) fn wants_whole_partitions(&self) -> bool {
        self.clustering.is_empty() && !self.has_regulars()
    }
}

/// `name`, `"name"`, or `keys(name)` and its kin.
fn is_target(target: &str, name: &str) -> bool {
    let inner = match target.split_once('(') {
        Some((_, rest)) => rest.strip_suffix(')').unwrap_or(rest),
        None => target,
    };
    inner == name || inner == types::maybe_quote(name)
}

/// Virtual tables are filtered without being asked, but for the one that may be long.
fn filters_freely(table: &Table) -> bool {
    table.is_virtual() && table.name != schema::system::SYSTEM_LOGS
}

fn check_ann_column(column: Option<&Column>) -> Result<(), CqlError> {
    match column.map(|column| &column.ty) {
        Some(CqlType::Vector { element, .. }) if **element == CqlType::Float => Ok(()),
        _ => Err(CqlError::invalid("ANN ordering is only supported on float vector indexes")),
    }
}

/// `expr(index, value)` names an index that must exist and be custom; none of those is served.
fn check_expressions(select: &ast::Select, table: &Table) -> Result<(), CqlError> {
    let mut expressions = select.filter.iter().filter_map(|relation| match relation {
        ast::Relation::Expression(index, _) => Some(index),
        _ => None,
    });
    let Some(name) = expressions.next() else { return Ok(()) };
    if expressions.next().is_some() {
        return Err(CqlError::invalid(
            "Multiple custom index expressions in a single query are not supported",
        ));
    }
    let shown =
        format!("{}.{}", types::maybe_quote(&table.keyspace), types::maybe_quote(&table.name));
    match table.indexes.get(name) {
        None => Err(CqlError::invalid(format!(
            "Invalid index expression, index {name} not found for {shown}"
        ))),
        Some(index) if index.kind != "CUSTOM" => Err(CqlError::invalid(format!(
            "Only CUSTOM indexes may be used in custom index expressions, {name} is not valid"
        ))),
        Some(_) => Err(CqlError::unsupported("An expression of an index")),
    }
}
