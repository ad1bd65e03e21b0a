//! Tables and views.

use std::collections::BTreeSet;

use super::property::Seen;
use super::{K, Parser, Res};
use crate::ast::{
    AlterTable, AlterView, ColumnDefinition, ColumnMask, CreateTable, CreateView, DropObject,
    PrimaryKey, Statement, TableChange, TableOptions,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Table])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        let mut table = CreateTable {
            name,
            if_not_exists,
            columns: Vec::new(),
            primary_key: None,
            options: TableOptions::default(),
        };
        self.expect(Kind::OpenParen, "'('")?;
        let mut seen = BTreeSet::new();
        self.table_item(&mut table, &mut seen)?;
        while self.eat(Kind::Comma) {
            if !matches!(self.kind(), Kind::Comma | Kind::CloseParen) {
                self.table_item(&mut table, &mut seen)?;
            }
        }
        self.expect(Kind::CloseParen, "')'")?;
        if self.eat_word(K::With) {
            table.options = self.table_options("table", &table.name.name)?;
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// A column or the `PRIMARY KEY` clause.
    fn table_item(&mut self, table: &mut CreateTable, seen: &mut BTreeSet<String>) -> Res<()> {
        if self.is(K::Primary) {
            let key = self.primary_key()?;
            return self.set_key(table, key);
        }
        let column = self.column_definition()?;
        if !seen.insert(column.name.clone()) {
            let (column, table) = (&column.name, &table.name.name);
            return self
                .invalid(format!("Duplicate column '{column}' declaration for table '{table}'"));
        }
        let name = column.name.clone();
        table.columns.push(column);
        if self.eat_word(K::Primary) {
            self.expect_word(K::Key)?;
            self.set_key(table, PrimaryKey { partition: vec![name], clustering: Vec::new() })?;
        }
        Ok(())
    }

    fn set_key(&self, table: &mut CreateTable, key: PrimaryKey) -> Res<()> {
        if table.primary_key.is_some() {
            let table = &table.name.name;
            return self.invalid(format!(
                "Multiple PRIMARY KEY specified for table '{table}' (exactly one required)"
            ));
        }
        table.primary_key = Some(key);
        Ok(())
    }

    fn column_definition(&mut self) -> Res<ColumnDefinition> {
        let name = self.name()?;
        let data_type = self.data_type()?;
        let is_static = self.eat_word(K::Static);
        let mask = if self.is(K::Masked) { Some(self.mask()?) } else { None };
        Ok(ColumnDefinition { name, data_type, is_static, mask })
    }

    /// `MASKED WITH DEFAULT` or a function; `default` may name one too.
    fn mask(&mut self) -> Res<ColumnMask> {
        self.expect_words(&[K::Masked, K::With])?;
        if self.is(K::Default) && !self.is_call_at(0) {
            self.skip();
            return Ok(ColumnMask::Default);
        }
        let function = self.function_name()?;
        Ok(ColumnMask::Function(function, self.paren_list_or_empty(Self::term)?))
    }

    /// `PRIMARY KEY ((a, b), c)`.
    fn primary_key(&mut self) -> Res<PrimaryKey> {
        self.expect_words(&[K::Primary, K::Key])?;
        self.expect(Kind::OpenParen, "'('")?;
        let partition = match self.kind() {
            Kind::OpenParen => self.paren_list(Self::name)?,
            _ => vec![self.name()?],
        };
        let mut clustering = Vec::new();
        while self.eat(Kind::Comma) {
            clustering.push(self.name()?);
        }
        self.expect(Kind::CloseParen, "')'")?;
        Ok(PrimaryKey { partition, clustering })
    }

    fn table_options(&mut self, what: &str, name: &str) -> Res<TableOptions> {
        let mut options = TableOptions::default();
        let mut seen = Seen::new();
        let mut ordered = BTreeSet::new();
        self.and_list(|p| {
            if p.is(K::Compact) && p.is_at(1, K::Storage) {
                p.skip();
                p.skip();
                if what == "view" {
                    return p.rule(
                        "COMPACT STORAGE tables are not allowed starting with version 4.0".to_owned(),
                    );
                }
                options.compact_storage = true;
            } else if p.is_clustering_order() {
                p.expect_words(&[K::Clustering, K::Order, K::By])?;
                for (column, descending) in p.paren_list(Self::column_order)? {
                    if !ordered.insert(column.clone()) {
                        return p.invalid(format!(
                            "Duplicate column '{column}' in CLUSTERING ORDER BY clause for {what} '{name}'"
                        ));
                    }
                    options.clustering_order.push((column, descending));
                }
            } else {
                options.properties.push(p.property(&mut seen)?);
            }
            Ok(())
        })?;
        Ok(options)
    }

    /// A column and `ASC` or `DESC`, one of which is required.
    fn column_order(&mut self) -> Res<(String, bool)> {
        let column = self.name()?;
        let descending = self.eat_word(K::Desc);
        if !descending && !self.eat_word(K::Asc) {
            return self.no_viable();
        }
        Ok((column, descending))
    }

    pub(super) fn alter_table(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::Table])?;
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        let Kind::Keyword(word) = self.kind() else { return self.no_viable() };
        self.skip();
        let change = match word {
            K::Alter => self.alter_column()?,
            K::Add => self.add_columns()?,
            K::Drop if self.is(K::Compact) && self.is_at(1, K::Storage) => {
                self.skip();
                self.skip();
                TableChange::DropCompactStorage
            }
            K::Drop => self.drop_columns()?,
            K::Rename => {
                let if_exists = self.if_exists()?;
                TableChange::Rename { if_exists, columns: self.and_list(Self::renaming)? }
            }
            K::With => TableChange::Properties(self.properties()?),
            _ => return self.no_viable(),
        };
        Ok(Statement::AlterTable(Box::new(AlterTable { name, if_exists, change })))
    }

    /// `a TO b`.
    pub(super) fn renaming(&mut self) -> Res<(String, String)> {
        let from = self.name()?;
        self.expect_word(K::To)?;
        Ok((from, self.name()?))
    }

    fn alter_column(&mut self) -> Res<TableChange> {
        let if_exists = self.if_exists()?;
        let column = self.column()?;
        if !if_exists && self.eat_word(K::Type) {
            return Ok(TableChange::AlterType { column, data_type: self.data_type()? });
        }
        let mask = if self.eat_word(K::Drop) {
            self.expect_word(K::Masked)?;
            None
        } else {
            Some(self.mask()?)
        };
        Ok(TableChange::Mask { column, if_exists, mask })
    }

    fn add_columns(&mut self) -> Res<TableChange> {
        let if_not_exists = self.if_not_exists()?;
        let columns = match self.kind() {
            Kind::OpenParen => self.paren_list(Self::column_definition)?,
            _ => vec![self.column_definition()?],
        };
        Ok(TableChange::Add { if_not_exists, columns })
    }

    fn drop_columns(&mut self) -> Res<TableChange> {
        let if_exists = self.if_exists()?;
        let columns = match self.kind() {
            Kind::OpenParen => self.paren_list(Self::name)?,
            _ => vec![self.name()?],
        };
        let mut timestamp = None;
        if self.eat_word(K::Using) {
            self.expect_word(K::Timestamp)?;
            if self.kind() != Kind::Integer {
                return self.mismatch("INTEGER");
            }
            let Ok(micros) = self.source().parse() else {
                return self.rule(format!(
                    "Failed parsing statement: [{}] reason: NumberFormatException For input string: \"{}\"",
                    self.text,
                    self.source()
                ));
            };
            timestamp = Some(micros);
            self.skip();
        }
        Ok(TableChange::Drop { if_exists, columns, timestamp })
    }

    pub(super) fn drop_table(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Table])?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropTable(DropObject { name: self.table_name()?, if_exists }))
    }

    pub(super) fn create_view(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Materialized, K::View])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.table_name()?;
        self.expect_words(&[K::As, K::Select])?;
        let selectors = self.selectors()?;
        self.expect_word(K::From)?;
        let base = self.table_name()?;
        let filter = if self.eat_word(K::Where) { self.relations()? } else { Vec::new() };
        let primary_key = self.primary_key()?;
        let mut options = TableOptions::default();
        if self.eat_word(K::With) {
            options = self.table_options("view", &name.name)?;
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            if_not_exists,
            selectors,
            base,
            filter,
            primary_key,
            options,
        })))
    }

    pub(super) fn alter_view(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::Materialized, K::View])?;
        let if_exists = self.if_exists()?;
        let name = self.table_name()?;
        self.expect_word(K::With)?;
        Ok(Statement::AlterView(AlterView { name, if_exists, properties: self.properties()? }))
    }

    pub(super) fn drop_view(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Materialized, K::View])?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropView(DropObject { name: self.table_name()?, if_exists }))
    }
}
