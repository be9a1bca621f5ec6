# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_knowledge knowledge_synonyms src/knowledge/synonyms.toml)
