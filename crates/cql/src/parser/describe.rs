//! DESCRIBE.

use super::{K, Parser, Res};
use crate::ast::{Describe, DescribeTarget, QualifiedName, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn describe(&mut self) -> Res<Statement> {
        self.skip();
        let target = self.described()?;
        let internals = self.eat_word(K::With);
        if internals {
            self.expect_word(K::Internals)?;
        }
        Ok(Statement::Describe(Describe { target, internals }))
    }

    /// Plurals and `CLUSTER` are never names here; `TYPE`, `FUNCTION`, `AGGREGATE` and `ONLY` are,
    /// unless what they announce follows.
    fn described(&mut self) -> Res<DescribeTarget> {
        let Kind::Keyword(word) = self.kind() else { return self.generic() };
        let announced = self.is_name_at(1) || self.is_function_at(1);
        let simple = match word {
            K::Cluster => DescribeTarget::Cluster,
            K::Keyspaces => DescribeTarget::Keyspaces,
            K::Tables => DescribeTarget::Tables,
            K::Types => DescribeTarget::Types,
            K::Functions => DescribeTarget::Functions,
            K::Aggregates => DescribeTarget::Aggregates,
            K::Schema => DescribeTarget::Schema { full: false },
            K::Full => {
                self.skip();
                if !self.is(K::Schema) {
                    return self.mismatch("K_SCHEMA");
                }
                DescribeTarget::Schema { full: true }
            }
            K::Keyspace => return self.described_keyspace(false),
            K::Only if self.is_at(1, K::Keyspace) => {
                self.skip();
                return self.described_keyspace(true);
            }
            K::Table => return self.after_word(Self::table_name, DescribeTarget::Table),
            K::Index => return self.after_word(Self::table_name, DescribeTarget::Index),
            K::Materialized => {
                self.skip();
                if !self.is(K::View) {
                    return self.mismatch("K_VIEW");
                }
                return self.after_word(Self::table_name, DescribeTarget::View);
            }
            K::Type if announced => return self.after_word(Self::type_name, DescribeTarget::Type),
            K::Function if announced => {
                return self.after_word(Self::function_name, DescribeTarget::Function);
            }
            K::Aggregate if announced => {
                return self.after_word(Self::function_name, DescribeTarget::Aggregate);
            }
            _ => return self.generic(),
        };
        self.skip();
        Ok(simple)
    }

    fn after_word(
        &mut self,
        name: impl FnOnce(&mut Self) -> Res<QualifiedName>,
        target: impl FnOnce(QualifiedName) -> DescribeTarget,
    ) -> Res<DescribeTarget> {
        self.skip();
        Ok(target(name(self)?))
    }

    fn described_keyspace(&mut self, only: bool) -> Res<DescribeTarget> {
        self.skip();
        let given = self.is_name_at(0) || self.kind() == Kind::Question;
        let name = if given { Some(self.keyspace_name()?) } else { None };
        Ok(DescribeTarget::Keyspace { name, only })
    }

    fn generic(&mut self) -> Res<DescribeTarget> {
        let first = self.name()?;
        self.looked_ahead();
        if !self.eat(Kind::Dot) {
            return Ok(DescribeTarget::Generic(QualifiedName { keyspace: None, name: first }));
        }
        let name = self.name()?;
        Ok(DescribeTarget::Generic(QualifiedName { keyspace: Some(first), name }))
    }
}
