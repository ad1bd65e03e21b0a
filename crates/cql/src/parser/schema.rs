//! Keyspaces, user types, indexes and triggers.

use super::{K, Parser, Res};
use crate::ast::{
    AlterKeyspace, AlterType, CreateIndex, CreateKeyspace, CreateTrigger, CreateType, DropKeyspace,
    DropObject, DropTrigger, IndexTarget, IndexTargetKind, Statement, TypeChange,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn create_keyspace(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Keyspace])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        self.expect_word(K::With)?;
        let properties = self.properties()?;
        Ok(Statement::CreateKeyspace(CreateKeyspace { name, if_not_exists, properties }))
    }

    pub(super) fn alter_keyspace(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::Keyspace])?;
        let if_exists = self.if_exists()?;
        let name = self.keyspace_name()?;
        self.expect_word(K::With)?;
        Ok(Statement::AlterKeyspace(AlterKeyspace {
            name,
            if_exists,
            properties: self.properties()?,
        }))
    }

    pub(super) fn drop_keyspace(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Keyspace])?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropKeyspace(DropKeyspace { name: self.keyspace_name()?, if_exists }))
    }

    pub(super) fn create_type(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Type])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.type_name()?;
        self.expect(Kind::OpenParen, "'('")?;
        let mut fields = vec![(self.name()?, self.data_type()?)];
        while self.eat(Kind::Comma) {
            if !matches!(self.kind(), Kind::Comma | Kind::CloseParen) {
                fields.push((self.name()?, self.data_type()?));
            }
        }
        self.expect(Kind::CloseParen, "')'")?;
        Ok(Statement::CreateType(CreateType { name, if_not_exists, fields }))
    }

    pub(super) fn alter_type(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Alter, K::Type])?;
        let if_exists = self.if_exists()?;
        let name = self.type_name()?;
        let Kind::Keyword(word) = self.kind() else { return self.no_viable() };
        self.skip();
        let change = match word {
            K::Alter => {
                let field = self.name()?;
                self.expect_word(K::Type)?;
                TypeChange::AlterField { field, data_type: self.data_type()? }
            }
            K::Add => {
                let if_not_exists = self.if_not_exists()?;
                let field = self.name()?;
                TypeChange::Add { if_not_exists, field, data_type: self.data_type()? }
            }
            K::Rename => {
                let if_exists = self.if_exists()?;
                TypeChange::Rename { if_exists, fields: self.and_list(Self::renaming)? }
            }
            _ => return self.no_viable(),
        };
        Ok(Statement::AlterType(AlterType { name, if_exists, change }))
    }

    pub(super) fn drop_type(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Type])?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropType(DropObject { name: self.type_name()?, if_exists }))
    }

    pub(super) fn create_index(&mut self) -> Res<Statement> {
        self.expect_word(K::Create)?;
        let custom = self.eat_word(K::Custom);
        self.expect_word(K::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = if self.is(K::On) { None } else { Some(self.plain_index_name()?) };
        self.expect_word(K::On)?;
        let table = self.table_name()?;
        let targets = self.paren_list_or_empty(Self::index_target)?;
        let class = if self.eat_word(K::Using) { Some(self.string()?) } else { None };
        let properties = if self.eat_word(K::With) { self.properties()? } else { Vec::new() };
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            name,
            if_not_exists,
            custom,
            table,
            targets,
            class,
            properties,
        })))
    }

    /// `c` or `KEYS(c)` and kin; `keys` and `values` are also names of columns.
    fn index_target(&mut self) -> Res<IndexTarget> {
        let kind = match self.kind() {
            Kind::Keyword(K::Values) if self.kind_at(1) == Kind::OpenParen => {
                IndexTargetKind::Values
            }
            Kind::Keyword(K::Keys) if self.kind_at(1) == Kind::OpenParen => IndexTargetKind::Keys,
            Kind::Keyword(K::Entries) => IndexTargetKind::Entries,
            Kind::Keyword(K::Full) => IndexTargetKind::Full,
            _ => {
                return Ok(IndexTarget { kind: IndexTargetKind::Simple, column: self.column()? });
            }
        };
        self.skip();
        self.expect(Kind::OpenParen, "'('")?;
        let column = self.column()?;
        self.expect(Kind::CloseParen, "')'")?;
        Ok(IndexTarget { kind, column })
    }

    pub(super) fn drop_index(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Index])?;
        let if_exists = self.if_exists()?;
        Ok(Statement::DropIndex(DropObject { name: self.index_name()?, if_exists }))
    }

    pub(super) fn create_trigger(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Create, K::Trigger])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.name()?;
        self.expect_word(K::On)?;
        let table = self.table_name()?;
        self.expect_word(K::Using)?;
        let class = self.string()?;
        Ok(Statement::CreateTrigger(CreateTrigger { name, if_not_exists, table, class }))
    }

    pub(super) fn drop_trigger(&mut self) -> Res<Statement> {
        self.expect_words(&[K::Drop, K::Trigger])?;
        let if_exists = self.if_exists()?;
        let name = self.name()?;
        self.expect_word(K::On)?;
        Ok(Statement::DropTrigger(DropTrigger { name, if_exists, table: self.table_name()? }))
    }
}
